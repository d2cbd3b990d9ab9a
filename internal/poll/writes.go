package poll

import (
	"context"
	"slices"
	"sync"
	"time"
)

// A Watcher reports writes to the database, by whichever process. Polls find what it misses.
type Watcher interface {
	// Watch calls report when there is something to report, one call at a time, until the function that it returns is
	// called. report returns for how long further writes need not be reported.
	Watch(report func(Report) time.Duration) (stop func())
}

// A Report is what a [Watcher] reports.
type Report int

// The reports.
const (
	Written   Report = iota // the database is being written to
	Missed                  // writes may have been missed until now
	Unwatched               // no writes are reported from now on
)

// watching is the value that WithWatcher gives a context.
type watching struct{}

// WithWatcher returns a context with which a table is opened whose waiters poll soon after w reports a write.
func WithWatcher(ctx context.Context, w Watcher) context.Context {
	return context.WithValue(ctx, watching{}, w)
}

// WatcherOf returns what [WithWatcher] has given ctx, or nil.
func WatcherOf(ctx context.Context) Watcher {
	w, _ := ctx.Value(watching{}).(Watcher)
	return w
}

// Attend is called by a waiter before it polls. Until it calls leave, writes are reported, if there is a [Watcher].
func (p *Poller) Attend() (leave func()) {
	if p.watcher == nil {
		return func() {}
	}
	a := &p.attendance
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.n++; a.n == 1 {
		a.stop = p.watcher.Watch(p.heard)
	}
	return func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		if a.n--; a.n == 0 {
			a.stop()
		}
	}
}

// An attendance counts the waiters, so that a write is heard of once, however many they are.
type attendance struct {
	mu   sync.Mutex
	n    int
	stop func()
}

const (
	// firstAfter is when a poll begins after a write. The next ones begin after twice the time each, up to lastAfter: a
	// write is reported before the transaction has committed, for which it may have to wait for the disk.
	firstAfter, lastAfter = time.Millisecond, 512 * time.Millisecond
	// spare is how many polls may come soon because of writes, and sparedAfter is the time in which one more may. soon is
	// the delay up to which a poll counts: without reports the next one would come not much later.
	spare, sparedAfter = 16, 100 * time.Millisecond
	soon               = 16 * time.Millisecond
	// longestRest is for how long writes are not reported that change nothing.
	longestRest = 25 * time.Millisecond
	// CalmShare is how many times longer than [Pace.Longest] the pause between two polls is at most: while nothing is written.
	CalmShare = 5
)

// writes are what the polls of a table know of the writes to the database. The zero value knows of none, and changes nothing.
//
//   - After a write polls begin within 1, 2, 4, 8 ms and so on.
//   - If 16 of them have found no lock free, the writes are others' business, and polls come about as often as without
//     reports: ten a second more at most.
//   - While nothing is written, polls are seldom, if reports have been seen to work: the last change that a poll has
//     found was reported before.
type writes struct {
	last    time.Time     // when one was reported
	since   time.Time     // when the first one was reported, or missed, that polls have yet to follow
	pending bool          // there is one
	latest  time.Time     // the last one of these
	delay   time.Duration // of the next poll after the latest one
	next    time.Time     // when that poll begins; zero if it begins as without reports
	spent   time.Time     // when as many polls are spared as were made
	works   bool          // reports have been seen to work
}

// heard lets polls follow a write. It returns for how long others would change nothing.
func (p *Poller) heard(r Report) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hears = true
	if p.writes.heard(r) {
		p.rearm()
	}
	if len(p.queue) > 0 && !slices.ContainsFunc(p.queue, func(call *pollCall) bool { return !call.pace.Regardless }) {
		return longestRest
	}
	return min(max(0, time.Until(p.writes.spent)), longestRest)
}

// heard notes a report. It returns true if the next poll may begin at another time than before.
func (w *writes) heard(r Report) bool {
	now := time.Now()
	if r == Unwatched {
		changed := w.works
		w.works = false
		return changed
	}
	if r == Written {
		w.last = now
	}
	if !w.pending {
		w.pending, w.since = true, now
	}
	before := w.next
	if w.plan(now, firstAfter); !before.IsZero() && (w.next.IsZero() || before.Before(w.next)) {
		w.next = before
	}
	return w.next != before
}

// plan sets the next poll to begin after the delay, if there is one to spare.
func (w *writes) plan(latest time.Time, delay time.Duration) {
	w.latest, w.delay = latest, delay
	if w.next = latest.Add(delay); delay <= soon && w.spent.After(w.next) {
		w.next = time.Time{}
	}
}

// polled notes a poll that began then.
func (w *writes) polled(began time.Time, found news) {
	now := time.Now()
	if !w.next.IsZero() && !began.Before(w.next) && w.delay <= soon {
		if full := now.Add(-spare * sparedAfter); w.spent.Before(full) {
			w.spent = full
		}
		w.spent = w.spent.Add(sparedAfter)
	}
	if found.changed {
		w.works = w.pending && !w.last.Before(w.since)
	}
	if found.free {
		w.spent = time.Time{}
	}
	switch {
	case !w.pending || began.Before(w.since): // it may have read too early
	case !w.latest.Before(began):
		w.plan(w.latest, firstAfter)
	// Of several writes the poll may have seen the first one alone.
	case found.changed && w.latest.Equal(w.since), w.delay == lastAfter:
		w.pending, w.next = false, time.Time{}
	default:
		w.plan(w.latest, 2*w.delay)
	}
}

// adjust returns when a poll for a call begins that would begin at the given time without reports.
func (w *writes) adjust(call *pollCall, at time.Time) time.Time {
	calm := w.works && call.pace.Watched
	switch {
	case call.pace.Regardless:
	case calm && !w.pending:
		if seldom := call.joined.Add(CalmShare * call.pace.Longest); at.Before(seldom) {
			return seldom
		}
	case w.next.IsZero() && calm && at.Before(w.since): // nothing was written until then
		return w.since.Add(at.Sub(call.joined))
	case w.next.IsZero():
	case calm, w.next.Before(at):
		return w.next
	}
	return at
}
