package main

import (
	"cmp"
	"slices"
	"time"
)

// A record is what has happened in a demo.
type record struct {
	demo    *demo
	place   string // where the lock lives
	begun   time.Time
	lanes   []lane
	entries []entry // of critical sections
	done    int     // rounds
	kill    *killing
	// takeover is the first entry after the kill.
	takeover *entry
	counter  int // what the file says after the last round
}

// A lane is what one worker has done.
type lane struct {
	pid   int
	waits []span
	holds []span // times in the critical section
}

// A span is a time that lasts until now if its end is zero.
type span struct{ from, to time.Time }

func (s span) contains(t time.Time) bool {
	return !t.Before(s.from) && (s.to.IsZero() || t.Before(s.to))
}

// An entry is the begin of a critical section.
type entry struct {
	worker  int // its index
	at      time.Time
	waited  time.Duration
	overlap bool
}

// A killing is the end of a worker, and of the lease that it left behind.
type killing struct {
	worker    int
	at, lease time.Time
}

func newRecord(d *demo, place string) *record { return &record{demo: d, place: place} }

func (r *record) enlist(workers []*demoWorker) {
	for _, w := range workers {
		r.lanes = append(r.lanes, lane{pid: w.child.cmd.Process.Pid})
	}
}

func (r *record) begin(at time.Time) { r.begun = at }

// note adds an event.
func (r *record) note(e demoEvent) {
	l := &r.lanes[e.worker.number-1]
	switch e.Kind {
	case demoWaiting:
		l.waits = append(l.waits, span{from: e.At})
	case demoEntered, demoHanging:
		end(l.waits, e.At)
		l.holds = append(l.holds, span{from: e.At})
		entered := entry{e.worker.number - 1, e.At, e.Waited, e.Overlap}
		r.entries = append(r.entries, entered)
		if r.kill != nil && r.takeover == nil && e.At.After(r.kill.at) {
			r.takeover = &entered
		}
	case demoFinished:
		end(l.holds, e.At)
		r.done++
	case demoReady, demoEnded:
	}
}

// noteKill adds that the worker that sent e was killed.
func (r *record) noteKill(e demoEvent, at time.Time) {
	end(r.lanes[e.worker.number-1].holds, at)
	r.kill = &killing{worker: e.worker.number - 1, at: at, lease: e.At.Add(e.Left)}
}

// end ends the last of the spans.
func end(spans []span, at time.Time) {
	if len(spans) > 0 {
		spans[len(spans)-1].to = at
	}
}

func (r *record) overlaps() (n int) {
	for _, e := range r.entries {
		if e.overlap {
			n++
		}
	}
	return n
}

func (r *record) lost() int { return r.done - r.counter }

// handoffs counts how often the lock went from one process to another.
func (r *record) handoffs() (n int) {
	entries := slices.SortedFunc(slices.Values(r.entries), func(a, b entry) int { return a.at.Compare(b.at) })
	for i, e := range entries {
		if i > 0 && e.worker != entries[i-1].worker {
			n++
		}
	}
	return n
}

// waiting returns the median and the longest of the waits for the lock.
func (r *record) waiting() (median, longest time.Duration) {
	waits := make([]time.Duration, len(r.entries))
	for i, e := range r.entries {
		waits[i] = e.waited
	}
	if len(waits) == 0 {
		return 0, 0
	}
	slices.SortFunc(waits, cmp.Compare)
	return waits[len(waits)/2], waits[len(waits)-1]
}

// A fault is a promise that was not kept.
type fault int

const (
	overlapped fault = iota
	lostUpdates
	tookOverEarly
	roundsMissing
)

// clockGrain is how much the clocks of SQLite, which counts milliseconds, and of
// this process may seem to differ.
const clockGrain = 5 * time.Millisecond

func (r *record) faults() (faults []fault) {
	if r.overlaps() > 0 {
		faults = append(faults, overlapped)
	}
	if r.lost() != 0 {
		faults = append(faults, lostUpdates)
	}
	if r.takeover != nil && r.takeover.at.Before(r.kill.lease.Add(-clockGrain)) {
		faults = append(faults, tookOverEarly)
	}
	if r.demo.duration == 0 && r.done < r.demo.rounds {
		faults = append(faults, roundsMissing)
	}
	return faults
}
