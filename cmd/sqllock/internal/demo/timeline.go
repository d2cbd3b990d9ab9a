package demo

import (
	"cmp"
	"slices"
	"time"
)

// A timeline is the record of what has happened in a demo.
type timeline struct {
	options  *options
	place    string // where the lock is
	page     string // the address of a page that shows it, or ""
	begun    time.Time
	lanes    []lane
	entries  []entry // of critical sections
	done     int     // rounds
	kill     *kill
	takeover *entry // the first entry after the kill
	counter  int    // the number in the file after the last round
}

// A lane is what one worker has done.
type lane struct {
	pid   int
	waits []span
	holds []span // times in the critical section
}

// A span is a period. It is still going on if its end is zero.
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

// A kill is the end of a worker, and of its lease.
type kill struct {
	worker int // its index
	at     time.Time
	expiry time.Time // of the lease
}

func newTimeline(o *options, place string) *timeline { return &timeline{options: o, place: place} }

// addLane adds the lane of a worker.
func (t *timeline) addLane(pid int) { t.lanes = append(t.lanes, lane{pid: pid}) }

func (t *timeline) begin(at time.Time) { t.begun = at }

// runningAt returns how long the demo has run.
func (t *timeline) runningAt(now time.Time) time.Duration {
	if t.begun.IsZero() {
		return 0
	}
	return now.Sub(t.begun)
}

// add adds an event.
func (t *timeline) add(e event) {
	l := &t.lanes[e.worker-1]
	switch e.Kind {
	case waiting:
		l.waits = append(l.waits, span{from: e.At})
	case entered, hanging:
		endLast(l.waits, e.At)
		l.holds = append(l.holds, span{from: e.At})
		added := entry{e.worker - 1, e.At, e.Waited, e.Overlap}
		t.entries = append(t.entries, added)
		if t.kill != nil && t.takeover == nil && e.At.After(t.kill.at) {
			t.takeover = &added
		}
	case finished:
		endLast(l.holds, e.At)
		t.done++
	case ready, ended:
	}
}

// addKill adds that the worker that reported e was killed.
func (t *timeline) addKill(e event, at time.Time) {
	endLast(t.lanes[e.worker-1].holds, at)
	t.kill = &kill{worker: e.worker - 1, at: at, expiry: e.At.Add(e.Left)}
}

// endLast ends the last of the spans.
func endLast(spans []span, at time.Time) {
	if len(spans) > 0 {
		spans[len(spans)-1].to = at
	}
}

func (t *timeline) overlaps() (n int) {
	for _, e := range t.entries {
		if e.overlap {
			n++
		}
	}
	return n
}

func (t *timeline) lost() int { return t.done - t.counter }

// handoffs counts how often the lock went from one process to another.
func (t *timeline) handoffs() (n int) {
	entries := slices.SortedFunc(slices.Values(t.entries), func(a, b entry) int { return a.at.Compare(b.at) })
	for i, e := range entries {
		if i > 0 && e.worker != entries[i-1].worker {
			n++
		}
	}
	return n
}

// waitTimes returns the median and the longest of the waits for the lock.
func (t *timeline) waitTimes() (median, longest time.Duration) {
	waits := make([]time.Duration, len(t.entries))
	for i, e := range t.entries {
		waits[i] = e.waited
	}
	if len(waits) == 0 {
		return 0, 0
	}
	slices.SortFunc(waits, cmp.Compare)
	return waits[len(waits)/2], waits[len(waits)-1]
}

// lastEntry returns the last entry of a worker that has one.
func (t *timeline) lastEntry(worker int) (last entry) {
	for _, e := range t.entries {
		if e.worker == worker {
			last = e
		}
	}
	return last
}

// A fault is a promise that was not kept.
type fault int

const (
	overlapped fault = iota
	lostUpdates
	tookOverEarly
	roundsMissing
)

// clockPrecision is how much the clocks of SQLite, which counts milliseconds, and of this
// process can seem to differ.
const clockPrecision = 5 * time.Millisecond

func (t *timeline) faults() (faults []fault) {
	if t.overlaps() > 0 {
		faults = append(faults, overlapped)
	}
	if t.lost() != 0 {
		faults = append(faults, lostUpdates)
	}
	if t.takeover != nil && t.takeover.at.Before(t.kill.expiry.Add(-clockPrecision)) {
		faults = append(faults, tookOverEarly)
	}
	if t.options.duration == 0 && t.done < t.options.rounds {
		faults = append(faults, roundsMissing)
	}
	return faults
}
