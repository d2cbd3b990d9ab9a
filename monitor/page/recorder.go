package page

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/printable"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/internal/seatkey"
	"github.com/sqllock/sqllock/observe"
)

const (
	// recorded is how many events of each kind a [Recorder] keeps: those that an operator should
	// know of, and the others. So the many of a busy process do not displace the few.
	recorded = 50
	// recordedOfKey is how many events it keeps of each key.
	recordedOfKey = 10
	// longestText is how many bytes a text of an event has at most, and so a key beside it.
	longestText = 180
	// longWait is from when on it is worth a line that a caller waited for a lock.
	longWait = time.Second
)

// A Recorder keeps what happened last to the locks of this process, its jobs and elections, how renewals
// go, and how many locks it has held in the last hour, to show them on the page:
//
//	recorder := new(page.Recorder)
//	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
//		Observers: []*observe.Observer{recorder.Observer()},
//	})
//	handler := page.Handler(registry, &page.Options{Recorder: recorder})
//
// A registry that it observes logs no long waits by itself: add [observe.SlogObserver] for that.
//
// The zero value is ready to use. It may observe several registries. All methods are safe for concurrent
// use. A Recorder keeps a hundred events at most, ten of each of the 200 keys that were used last, or
// of fewer if the keys are very long, 200 jobs, and the roles of electors that have not ended. Texts are
// cut: that is less than a megabyte, however long keys and errors are.
type Recorder struct {
	mu        sync.Mutex
	ordinary  []event // each in the order of time
	notable   []event
	health    renewals                  // without Err and Since
	failing   map[time.Duration]failure // of the times-to-live whose last renewal has failed
	elections []*election               // that this process takes part in, the first one first
	keys      lately[seen]
	jobs      lately[jobView]
	hour      history
}

// A failure is what is known of renewals that fail.
type failure struct {
	since, at time.Time // of the first one and of the last one
	err       error     // of the last one
}

// An event is a line of the page.
type event struct {
	At       time.Time `json:"at"`
	Severity Severity  `json:"severity"`
	What     string    `json:"what"`
	Key      string    `json:"key,omitempty"`
	Text     string    `json:"text,omitempty"`
}

// A seen is what was seen of a key. The JSON form is documented in docs/page.md.
type seen struct {
	Acquired    int     `json:"acquired"`
	LongestWait float64 `json:"longest_wait_seconds"`
	LongestHold float64 `json:"longest_hold_seconds"`
	Events      []event `json:"events"`
}

// renewals are how the automatic renewal of leases goes.
type renewals struct {
	At     time.Time // of the last one; zero if there was none
	Leases int       // that were to be renewed then
	Err    error     // of the last one of a time-to-live, or nil if none failed
	Since  time.Time // of the first failure, if the last one failed
	Done   int       // how many there were
	Failed int       // how many of these failed
	Lost   int       // leases that were lost, renewed automatically or not
	Least  float64   // the time left before the last one, as a part of the time-to-live
}

// Observer returns what tells the recorder, for [sqllock.RepositoryOptions] or
// [sqllock.RegistryOptions].
func (r *Recorder) Observer() *observe.Observer {
	return &observe.Observer{
		Acquire:  r.acquire,
		LeaseEnd: r.leaseEnd,
		Renewal:  func(_ context.Context, e observe.Renewal) { r.renewed(e) },
		Election: func(_ context.Context, e observe.Election) { r.elected(e) },
		Fallback: func(_ context.Context, e observe.Fallback) {
			r.add(event{Severity: Note, What: "fell back", Text: e.Reason.Error()})
		},
		Refusal: func(_ context.Context, e observe.Refusal) {
			r.add(event{Severity: Broken, What: "job refused", Key: e.Key, Text: e.Err.Error()})
		},
		Waiting: func(_ context.Context, e observe.Wait) {
			r.add(event{Severity: Note, What: "still waits", Key: e.Key, Text: heldBy("for "+duration(e.Waited), e.Holder, e.Process)})
		},
		JobRun: func(_ context.Context, e observe.JobRun) { r.ran(e) },
	}
}

// turnSince is the key under which the context of a turn has when its caller has asked for that.
type turnSince struct{}

// acquire keeps what becomes of a call that asks for a lock. The turn at a semaphore or a read-write lock is no lock that is held: a
// caller that gets it waits on, for a permit or for readers, until it releases the turn.
func (r *Recorder) acquire(ctx context.Context, e observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
	waits := report.Waits(ctx, e)
	turn := waits && seatkey.IsTurn(e.Key)
	if waits {
		r.count(1)
	}
	if turn {
		ctx = context.WithValue(ctx, turnSince{}, time.Now())
	}
	return ctx, func(e observe.AcquireEnd) {
		if turn && e.Err == nil {
			return
		}
		if waits {
			r.count(-1)
		}
		r.acquired(e)
	}
}

// leaseEnd keeps the end of a lease, or of the wait of a caller that had the turn.
func (r *Recorder) leaseEnd(ctx context.Context, e observe.LeaseEnd) {
	since, ok := ctx.Value(turnSince{}).(time.Time)
	if !ok || !seatkey.IsTurn(e.Key) {
		r.ended(e)
		return
	}
	r.count(-1)
	r.waited(e.Key, time.Since(since))
}

// count counts callers that wait.
func (r *Recorder) count(more int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hour.count(time.Now(), 0, more)
}

// waited keeps the end of a wait in turn.
func (r *Recorder) waited(turn string, waited time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	key := r.keys.of(turn)
	key.LongestWait = max(key.LongestWait, seconds(waited))
	if waited >= longWait {
		r.addLocked(event{At: time.Now(), Severity: Good, What: "wait ended", Key: turn, Text: "after " + duration(waited)})
	}
}

// answered counts an answer to a caller that has asked for a lock.
func (r *Recorder) answered(e observe.AcquireEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	held := 0
	if e.Err == nil && !e.Reentered {
		held = 1
	}
	r.hour.count(time.Now(), held, 0)
	if held > 0 || e.Outcome == observe.OutcomeTimeout {
		key := r.keys.of(e.Key)
		key.Acquired += held
		key.LongestWait = max(key.LongestWait, seconds(e.Took))
	}
}

// heldBy adds to text who holds a lock, or has finished and left its row, if that is known.
func heldBy(text, holder, process string) string {
	switch by := cmp.Or(process, holder); {
	case by == "":
		return text
	case (sqllock.Row{Holder: holder}).Kept():
		return text + ", kept by " + by
	default:
		return text + ", held by " + by
	}
}

func (r *Recorder) acquired(e observe.AcquireEnd) {
	r.answered(e)
	waited := heldBy("after "+duration(e.Took), e.HeldBy, "")
	switch {
	case e.Reentered && e.Err == nil, e.Outcome == observe.OutcomeHeld:
		return // nothing has changed
	case e.Outcome == observe.OutcomeError, e.Outcome == observe.OutcomeLost:
		r.add(event{Severity: Broken, What: "not acquired", Key: e.Key, Text: e.Err.Error()})
	case e.Outcome == observe.OutcomeTimeout:
		r.add(event{Severity: Note, What: "timed out", Key: e.Key, Text: waited})
	case e.Err != nil:
		r.add(event{Severity: Good, What: "wait ended", Key: e.Key, Text: waited})
	case e.Took >= longWait:
		r.add(event{Severity: Good, What: "acquired", Key: e.Key, Text: waited})
	default:
		r.add(event{Severity: Good, What: "acquired", Key: e.Key})
	}
}

func (r *Recorder) ended(e observe.LeaseEnd) {
	held := "after " + duration(e.Held)
	r.released(e)
	switch {
	case e.Reason.Lost():
		r.add(event{Severity: Broken, What: "lost", Key: e.Key, Text: held + ": " + map[observe.EndReason]string{
			observe.EndExpired: "it was not renewed in time", observe.EndTaken: "its row was removed or taken over",
		}[e.Reason]})
	case e.Err != nil && !errors.Is(e.Err, sqllock.ErrClosed):
		r.add(event{Severity: Broken, What: "not released", Key: e.Key, Text: e.Err.Error()})
	case e.Reason == observe.EndHandedOn:
		r.add(event{Severity: Good, What: "handed on", Key: e.Key, Text: held})
	default:
		r.add(event{Severity: Good, What: "released", Key: e.Key, Text: held})
	}
}

// renewed keeps what became of a renewal. Of failures in a row only the first is an event. The leases
// of each time-to-live are renewed on their own: those of one may fail while others do not.
func (r *Recorder) renewed(e observe.Renewal) {
	now := time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	h := &r.health
	h.At, h.Leases, h.Least = now, e.Leases, float64(e.Left)/float64(max(e.TTL, 1))
	h.Done++
	r.forgetLocked(now)
	before, failing := r.failing[e.TTL]
	switch {
	case e.Err != nil:
		h.Failed++
		if !failing {
			before.since = now
			r.addLocked(event{At: now, Severity: Note, What: "renewals fail", Text: e.Err.Error()})
		}
		if r.failing == nil {
			r.failing = make(map[time.Duration]failure)
		}
		r.failing[e.TTL] = failure{before.since, now, errors.New(brief(e.Err.Error()))}
	case failing:
		delete(r.failing, e.TTL)
		r.addLocked(event{At: now, Severity: Note, What: "renewals work again"})
	}
}

// forgetLocked forgets the failures after which there was none for a whole time-to-live: the leases
// are gone.
func (r *Recorder) forgetLocked(now time.Time) {
	maps.DeleteFunc(r.failing, func(ttl time.Duration, f failure) bool { return now.Sub(f.at) > ttl })
}

// healthLocked returns how renewals go now, with the failure that has lasted the longest.
func (r *Recorder) healthLocked() renewals {
	r.forgetLocked(time.Now())
	h := r.health
	for _, f := range r.failing {
		if h.Err == nil || f.since.Before(h.Since) {
			h.Err, h.Since = f.err, f.since
		}
	}
	return h
}

// released counts the end of a lease.
func (r *Recorder) released(e observe.LeaseEnd) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.hour.count(time.Now(), -1, 0)
	key := r.keys.of(e.Key)
	key.LongestHold = max(key.LongestHold, seconds(e.Held))
	if e.Reason.Lost() {
		r.health.Lost++
	}
}

// add keeps an event of now.
func (r *Recorder) add(e event) {
	e.At = time.Now()
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addLocked(e)
}

func (r *Recorder) addLocked(e event) {
	key := e.Key
	e.Key, e.Text = brief(e.Key), brief(e.Text)
	kind := &r.ordinary
	if e.Severity != Good {
		kind = &r.notable
	}
	*kind = last(recorded, append(*kind, e))
	if key != "" {
		of := r.keys.of(key)
		if len(of.Events) > 0 {
			e.Key = of.Events[0].Key // one copy is enough
		}
		of.Events = last(recordedOfKey, append(of.Events, e))
	}
}

// brief returns a text that is safe to show, and of a long one the beginning.
func brief(text string) string {
	return strings.Clone(cut(printable.Text(cut(text)))) // a part of a text would keep the whole of it
}

// cut returns the beginning of a long text.
func cut(text string) string {
	const rest = "…"
	if len(text) <= longestText {
		return text
	}
	end := longestText - len(rest)
	for end > 0 && !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + rest
}

// last returns the last n events at most. They share no memory with those before.
func last(n int, events []event) []event {
	if len(events) > n {
		return slices.Clone(events[len(events)-n:])
	}
	return events
}

// A record is what a recorder has kept.
type record struct {
	events    []event // the last one first
	renewals  renewals
	elections []election
	keys      map[string]seen
	jobs      []jobView
	hour      hourView
}

// record returns what was kept. A nil Recorder has kept nothing.
func (r *Recorder) record() record {
	if r == nil {
		return record{}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	kept := record{events: newestFirst(r.ordinary, r.notable), renewals: r.healthLocked(), keys: r.keys.values(), hour: r.hour.view(time.Now())}
	for _, e := range r.elections {
		kept.elections = append(kept.elections, *e)
	}
	kept.jobs = slices.SortedFunc(maps.Values(r.jobs.values()), func(a, b jobView) int { return cmp.Compare(a.Job, b.Job) })
	return kept
}

func newestFirst(lists ...[]event) []event {
	events := slices.Concat(lists...)
	slices.SortStableFunc(events, func(a, b event) int { return b.At.Compare(a.At) })
	return events
}
