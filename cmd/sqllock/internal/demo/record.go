package demo

import (
	"fmt"
	"slices"
	"time"
)

// A record is what has happened in a demo.
type record struct {
	options  *options
	begun    time.Time
	rounds   []event // that were finished
	counter  int     // the number in the file after the last round
	hang     *event  // of the worker that was killed
	kill     time.Time
	expiry   time.Time // of its lease
	takeover time.Time // the first entry after the kill
}

// finished records and prints a round, after which the file has a value.
func (r *record) finished(e event, counter int) error {
	r.rounds = append(r.rounds, e)
	r.counter = counter
	if r.hang != nil && r.takeover.IsZero() && e.At.After(r.kill) {
		r.takeover = e.At
		if err := r.line(e.At, e.worker, "takes over, %s after the kill", seconds(e.At.Sub(r.kill))); err != nil {
			return err
		}
	}
	if e.Overlap {
		if err := r.line(e.At, e.worker, "OVERLAP: starts to work while another process is working"); err != nil {
			return err
		}
	}
	took := fmt.Sprintf("waited %s, held %s", seconds(e.Waited), seconds(e.Worked))
	if r.options.withoutLock {
		took = "worked " + seconds(e.Worked)
	}
	return r.line(e.At.Add(e.Worked), e.worker, "has done round %d%s, %s; the file contains %d", len(r.rounds), r.options.ofRounds(), took, counter)
}

// killed records and prints that the worker that reported e was killed.
func (r *record) killed(e event, at time.Time) error {
	r.hang, r.kill, r.expiry = &e, at, e.At.Add(e.Left)
	return r.line(at, e.worker, "holds the lock and is killed (SIGKILL); its lease has %s left, until then no other worker can acquire the lock", seconds(r.expiry.Sub(at)))
}

// line prints what a worker did.
func (r *record) line(at time.Time, worker int, format string, args ...any) error {
	_, err := fmt.Fprintf(r.options.out, "%8s  worker %d  %s\n", seconds(at.Sub(r.begun)), worker, fmt.Sprintf(format, args...))
	if err != nil {
		return fmt.Errorf("show an event: %w", err)
	}
	return nil
}

// entries returns the begins of all critical sections, in their order.
func (r *record) entries() []event {
	entries := slices.Clone(r.rounds)
	if r.hang != nil {
		entries = append(entries, *r.hang)
	}
	slices.SortFunc(entries, func(a, b event) int { return a.At.Compare(b.At) })
	return entries
}

func (r *record) overlaps() (n int) {
	for _, e := range r.entries() {
		if e.Overlap {
			n++
		}
	}
	return n
}

func (r *record) lost() int { return len(r.rounds) - r.counter }

// handoffs counts how often the lock went from one process to another.
func (r *record) handoffs() (n int) {
	entries := r.entries()
	for i, e := range entries {
		if i > 0 && e.worker != entries[i-1].worker {
			n++
		}
	}
	return n
}

// waits returns the median and the longest of the waits for the lock.
func (r *record) waits() (median, longest time.Duration) {
	var waits []time.Duration
	for _, e := range r.entries() {
		waits = append(waits, e.Waited)
	}
	slices.Sort(waits)
	return waits[len(waits)/2], waits[len(waits)-1]
}
