package report

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/observe"
)

const (
	// longestPause is the longest pause between two reports of a key.
	longestPause = time.Hour
	// runShare is how many times shorter than the wait that is reported the pause is between two looks at all keys.
	runShare = 30
	// askFor is for how long the database may be asked about the waits that are reported at once.
	askFor = time.Second
)

// A Tracker knows the callers of a registry that wait, and reports those that wait for long: one event for a key at a time,
// however many callers wait for it, and again at growing intervals. It has a timer while there are any, and no goroutine. A nil Tracker
// knows none. All methods are safe for concurrent use.
type Tracker struct {
	after  time.Duration // negative: nothing is reported
	report []func(context.Context, observe.Wait)
	// processOf returns the process of a holder, or "".
	processOf func(holder string) string
	// hidesKeys has LOCK_KEYs reported instead of keys: to the default logger, which the
	// application has not chosen.
	hidesKeys bool

	mu    sync.Mutex
	keys  map[string]*queue // by LOCK_KEY
	timer *time.Timer
	due   time.Time // when timer runs; zero if it does not
	rest  time.Time // it does not run before that: with many keys that would take much time
}

// A queue has the callers that wait for one LOCK_KEY: there is one at least.
type queue struct {
	callers map[*Caller]struct{}
	pause   time.Duration // after the last report; 0 if there was none
	next    time.Time     // no report comes before that
}

// A Caller is a call that waits. A nil Caller, that of a nil Tracker, does nothing.
type Caller struct {
	tracker *Tracker
	ctx     context.Context //nolint:containedctx // the caller's; it lives as long as the call
	began   time.Time
	at      Place
}

// A Place is a lock that a caller waits for.
type Place struct {
	Key     string // as the caller wrote it
	LockKey string
	// Seen returns the holder that was seen last, or "", and the error of the database through which callers wait, or
	// nil. It may be called by any goroutine for as long as the caller waits, and a moment longer.
	// The context limits what it asks of the database.
	Seen func(ctx context.Context) (holder string, err error)
}

// NewTracker returns a tracker that reports a wait once it has lasted for that long, to all observers that have a function for it. If
// there are none, it logs. If after is negative, it reports none. processOf returns the process of a holder, or "". With
// secret, the log has the LOCK_KEY instead of the key.
func NewTracker(after time.Duration, observers []*observe.Observer, processOf func(holder string) string, secret bool) *Tracker {
	t := &Tracker{after: after, processOf: processOf, keys: make(map[string]*queue)}
	for _, one := range observers {
		if one.Waiting != nil {
			t.report = append(t.report, one.Waiting)
		}
	}
	if len(t.report) == 0 {
		t.hidesKeys = secret
		t.report = append(t.report, func(ctx context.Context, e observe.Wait) {
			observe.SlogObserver(nil).Waiting(ctx, e) // the default logger may have been set since
		})
	}
	return t
}

// A Long is a lock for which callers have waited for long.
type Long struct {
	Key, LockKey string
	Waited       time.Duration // by the first of them
	Callers      int
}

// Long returns the locks for which callers have waited for at least that long, those with the longest wait first.
func (t *Tracker) Long(least time.Duration) (long []Long) {
	if t == nil {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	now := time.Now()
	for lockKey, q := range t.keys {
		one := Long{LockKey: lockKey}
		for c := range q.callers {
			waited := now.Sub(c.began)
			if waited < least {
				continue
			}
			if one.Callers++; waited > one.Waited || one.Callers == 1 {
				one.Key, one.Waited = c.at.Key, waited
			}
		}
		if one.Callers > 0 {
			long = append(long, one)
		}
	}
	slices.SortFunc(long, func(a, b Long) int {
		return cmp.Or(cmp.Compare(b.Waited, a.Waited), strings.Compare(a.LockKey, b.LockKey))
	})
	return long
}

// TrackerOf returns the tracker of a *sqllock.Registry: package sqllock sets it.
var TrackerOf func(registry any) *Tracker

// unreported is the key under which a context has the key for which its callers may wait for ever.
type unreported struct{}

// Unreported returns a context whose callers may wait for a key without a report, as those do that stand by. It has no
// effect on other keys, so it may be the context of a lease.
func Unreported(ctx context.Context, key string) context.Context {
	return context.WithValue(ctx, unreported{}, key)
}

// StandsBy reports whether the context is one of [Unreported] for the key.
func StandsBy(ctx context.Context, key string) bool { return ctx.Value(unreported{}) == key }

// counted is the key under which a context has what [Counted] has put there.
type counted struct{}

// A part is a wait that is part of a longer one.
type part struct {
	key  string
	over atomic.Bool
}

// Counted returns a context whose callers are not counted where they wait for a key, until done is called: one who waits for
// it, and is counted, has them wait. The context may be that of a lease.
func Counted(ctx context.Context, key string) (_ context.Context, done func()) {
	p := &part{key: key}
	return context.WithValue(ctx, counted{}, p), func() { p.over.Store(true) }
}

// Waits reports whether a call of ctx that asks for a lock counts as one that waits, from then on: not a single try, nor one that
// stands by, nor one that is part of a wait that is counted.
func Waits(ctx context.Context, e observe.AcquireStart) bool {
	return e.Wait != 0 && !e.StandsBy && !isCounted(ctx, e.Key)
}

func isCounted(ctx context.Context, key string) bool {
	p, _ := ctx.Value(counted{}).(*part)
	return p != nil && p.key == key && !p.over.Load()
}

// Begin notes that a call of ctx waits. End follows.
func (t *Tracker) Begin(ctx context.Context, at Place) *Caller {
	if t == nil || StandsBy(ctx, at.Key) || isCounted(ctx, at.Key) {
		return nil
	}
	c := &Caller{tracker: t, ctx: ctx, began: time.Now(), at: at}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.addLocked(c)
	t.armLocked(c.began.Add(t.after))
	return c
}

// Move notes that the call waits for another lock now.
func (c *Caller) Move(at Place) {
	if c == nil || c.at.LockKey == at.LockKey { // only Move changes it
		return
	}
	c.tracker.mu.Lock()
	defer c.tracker.mu.Unlock()
	c.tracker.removeLocked(c)
	c.at = at
	c.tracker.addLocked(c)
	c.tracker.armLocked(c.began.Add(c.tracker.after))
}

// End notes that the call waits no more.
func (c *Caller) End() {
	if c == nil {
		return
	}
	c.tracker.mu.Lock()
	defer c.tracker.mu.Unlock()
	c.tracker.removeLocked(c)
}

func (t *Tracker) addLocked(c *Caller) {
	q := t.keys[c.at.LockKey]
	if q == nil {
		q = &queue{callers: make(map[*Caller]struct{}, 1)}
		t.keys[c.at.LockKey] = q
	}
	q.callers[c] = struct{}{}
}

func (t *Tracker) removeLocked(c *Caller) {
	q := t.keys[c.at.LockKey]
	if delete(q.callers, c); len(q.callers) == 0 {
		delete(t.keys, c.at.LockKey)
	}
	if len(t.keys) == 0 && t.timer != nil {
		t.timer.Stop()
		t.due = time.Time{}
	}
}

// armLocked sets the timer to a time, unless it is set to an earlier one.
func (t *Tracker) armLocked(at time.Time) {
	if t.after < 0 {
		return
	}
	if at.Before(t.rest) {
		at = t.rest
	}
	switch {
	case !t.due.IsZero() && !at.Before(t.due):
		return
	case t.timer == nil:
		t.timer = time.AfterFunc(time.Until(at), t.run)
	default:
		t.timer.Reset(time.Until(at))
	}
	t.due = at
}

// run reports the waits that are to be reported now, without a mutex.
func (t *Tracker) run() {
	limit := time.Now().Add(askFor)
	for _, c := range t.takeLate(time.Now()) {
		e := observe.Wait{Key: c.at.Key, Waited: time.Since(c.began)}
		ctx, cancel := context.WithDeadline(c.ctx, limit)
		e.Holder, e.Err = c.at.Seen(ctx)
		cancel()
		e.Process = t.processOf(e.Holder)
		if t.hidesKeys {
			e = withoutKey(e, c.at.LockKey)
		}
		for _, report := range t.report {
			report(c.ctx, e)
		}
	}
}

// withoutKey returns an event that shows the LOCK_KEY instead of the key, also in its error.
func withoutKey(e observe.Wait, lockKey string) observe.Wait {
	if outage := failure.Outage(e.Err, ""); outage != nil {
		e.Err = outage // it may have the keys of a joint lock
	}
	if e.Err != nil {
		e.Err = errors.New(strings.ReplaceAll(e.Err.Error(), strconv.Quote(e.Key), strconv.Quote(lockKey)))
	}
	e.Key = lockKey
	return e
}

// takeLate returns the oldest caller of each key that is to be reported, and arms the timer for the next ones.
func (t *Tracker) takeLate(now time.Time) (late []Caller) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.due, t.rest = time.Time{}, now.Add(t.after/runShare)
	for _, key := range slices.Sorted(maps.Keys(t.keys)) { // in the same order each time, so that a simulation can repeat it
		q := t.keys[key]
		oldest := q.oldest()
		at := oldest.began.Add(t.after)
		if at.Before(q.next) {
			at = q.next
		}
		if !now.Before(at) {
			late = append(late, *oldest)
			q.pause = min(max(t.after, 2*q.pause), max(t.after, longestPause))
			q.next = now.Add(q.pause)
			at = q.next
		}
		t.armLocked(at)
	}
	return late
}

// oldest returns the caller that has waited the longest.
func (q *queue) oldest() *Caller {
	return slices.MinFunc(slices.Collect(maps.Keys(q.callers)), func(a, b *Caller) int { return a.began.Compare(b.began) })
}
