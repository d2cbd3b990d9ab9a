package locktable

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
)

// A policy says how long, and how often, a statement is sent.
type policy struct {
	op string // what an [Error] says was done, or ""
	// races is how often the statement is sent again after a lost race.
	races int
	// pinned is for how long it is sent again while a transaction has the row pinned.
	pinned time.Duration
	// lockless is for reads that lock no row. What blocks one, a locked table or a node of a cluster that lags
	// behind, is then no pinned row.
	lockless bool
	// answer is how long each answer may take, or the claim's time-to-live or the table's patience if that is
	// longer, unless the limit is exact; a batch has the patience alone. 0 means as long as ctx lasts, or the renewer
	// allows.
	answer time.Duration
	exact  bool
}

// always is for statements that are sent again after every lost race, until ctx ends.
const always = int(^uint(0) >> 1)

// maxOldPlans is how often a statement is sent again, whatever the policy, since the server answers that its plan is
// old. A driver prepares it anew, but a pooler may map it to the same old one each time.
const maxOldPlans = 10

// answerTimeout is how long an answer is waited for at least. A shorter lease would be over by then, but what holds
// the database up may pass.
const answerTimeout = 10 * time.Second

// PinnedTimeout is how long a statement about a row waits for a transaction that has the row pinned.
const PinnedTimeout = time.Second

// releaseTimeout is the same for a release. If that fails, the lock stays taken although it has no holder: on a slow
// server contenders may lock the row for a second.
const releaseTimeout = 3 * time.Second

// GuardOp is the Op of the errors of [Table.Guard].
const GuardOp = "guard"

// The limits of all statements.
var (
	opening    = policy{races: always, pinned: PinnedTimeout, answer: answerTimeout}
	acquiring  = policy{op: "acquire", races: 10, answer: answerTimeout}
	releasing  = policy{op: "release", races: always, pinned: releaseTimeout, answer: answerTimeout}
	renewing   = policy{op: "renew", races: always, answer: answerTimeout}                         // pinned is an argument
	discarding = policy{op: "release", races: always, pinned: PinnedTimeout, answer: batchTimeout} // many rows of leftovers
	keeping    = policy{op: "keep", races: always, pinned: PinnedTimeout, answer: answerTimeout}
	reading    = policy{op: "read", races: always, pinned: PinnedTimeout, lockless: true, answer: answerTimeout}
	// A poll for many is not that of one row, so it does not depend on a time-to-live.
	polling  = policy{op: "read", races: always, pinned: PinnedTimeout, lockless: true, answer: batchTimeout}
	guarding = policy{op: GuardOp}

	renewingAll     = policy{op: "renew all", races: always, pinned: PinnedTimeout}
	listing         = policy{op: "list", races: always, pinned: PinnedTimeout, lockless: true}
	counting        = policy{op: "count", races: always, pinned: PinnedTimeout, lockless: true}
	deletingExpired = policy{op: "delete expired locks", races: always, pinned: PinnedTimeout}
	deletingClient  = policy{op: "release all", races: always, pinned: PinnedTimeout}
)

// The time limits of a batch, see [batched].
const (
	// batchTimeout is when a batch is given up. A dead connection does not report that.
	batchTimeout = 5 * time.Second
	// batchSlowAfter is how long others wait behind a batch before they use another connection, of maxLanes at most.
	batchSlowAfter = 100 * time.Millisecond
)

// A patience is the value that WithPatience gives a context.
type patience struct{}

// WithPatience returns a context with which [Open] makes a table that waits for so long at least for each answer, also
// about names; [HasSequence], [CheckServer] and the first connection of a pool do, too. The tests on servers use it:
// how fast the machine is must not decide what they find.
func WithPatience(ctx context.Context, least time.Duration) context.Context {
	return context.WithValue(ctx, patience{}, least)
}

// PatienceOf returns what [WithPatience] has given ctx, or 0.
func PatienceOf(ctx context.Context) time.Duration {
	least, _ := ctx.Value(patience{}).(time.Duration)
	return least
}

// The pause after the n-th lost race is random, up to shortestPause doubled n times or longestPause.
const (
	shortestPause = time.Millisecond
	longestPause  = 64 * time.Millisecond
)

// A retry counts how often, and since when, a statement was sent.
type retry struct {
	policy
	errors classifier
	began  time.Time
	sent   time.Time // when it was sent last
	n      int
	plans  int // how often of them with an old plan
}

// again reports whether to send the statement, which has failed with err, again: after a lost race, or while a row is
// pinned, as the policy allows. It pauses before.
func (r *retry) again(ctx context.Context, err error) bool {
	if r.errors.isOf(err, dialect.OldPlan) {
		r.plans++
	}
	again := r.errors.isRace(err) && r.n < r.races && r.plans <= maxOldPlans || r.errors.isBlocked(err) && time.Since(r.began) < r.pinned
	r.n++
	if !again || !pauseAfterRace(ctx, r.n-1) {
		return false
	}
	r.sent = time.Now()
	return true
}

// explain makes an [*Error] of the last error.
func (r *retry) explain(ctx context.Context, err error) error {
	answered := r.errors.isRefusal(err)
	err = r.errors.explain(ctx, r.op, err)
	if e := (*Error)(nil); !answered && errors.As(err, &e) && (e.Kind == Ended || e.Kind == NoAnswer) {
		e.Silent = time.Since(r.sent)
	}
	if r.lockless && Is(err, PinnedRow) || r.plans > maxOldPlans && Is(err, Race) { // a waiter would try on after a race
		err = &Error{Op: r.op, Kind: Failed, Err: errors.Unwrap(err)}
	}
	return err
}

// call returns what send returns, which sends a statement: again, as p allows. Statements that are batched do the
// same by a [retry] of their own, and those that are not by callAlone.
func call[T any](ctx context.Context, c classifier, p policy, send func(context.Context) (T, error)) (T, error) {
	now := time.Now()
	for r := (retry{policy: p, errors: c, began: now, sent: now}); ; {
		value, err := send(ctx)
		if err == nil {
			return value, nil
		}
		if !r.again(ctx, err) {
			return value, r.explain(ctx, err)
		}
	}
}

// callAlone is call for a statement that is not batched. It returns a moment after ctx or the time for an answer has
// ended at the latest, even if the driver ignores its context. Therefore send must not write to variables of its
// caller. late, unless it is nil, gets the answer of a driver that was left behind. ttl is that of the claim, if there
// is one.
func callAlone[T any](ctx context.Context, t *Table, p policy, ttl time.Duration, send func(context.Context) (T, error), late func(T, error)) (T, error) {
	return call(ctx, t.errors, p, func(ctx context.Context) (T, error) { return await(ctx, p.limit(ttl, t.patience), send, late) })
}

// Patience returns how long the answer to a batch is waited for.
func (t *Table) Patience() time.Duration { return max(batchTimeout, t.patience) }

// limit is how long the answer about a claim may take, or 0 for no limit.
func (p policy) limit(ttl, patience time.Duration) time.Duration {
	if p.answer == 0 || p.exact {
		return p.answer
	}
	return max(p.answer, ttl, patience)
}

// await returns what send returns, or errTimedOut if that takes longer than limit, unless that is 0. The error is
// bounded.ErrNoAnswer as well if send was left behind.
func await[T any](ctx context.Context, limit time.Duration, send func(context.Context) (T, error), late func(T, error)) (T, error) {
	if limit == 0 {
		return bounded.Do(ctx, bounded.Grace, func() (T, error) { return send(ctx) }, late)
	}
	limited, cancel := bounded.WithTimeout(ctx, limit)
	defer cancel()
	value, err := bounded.Do(limited, bounded.Grace, func() (T, error) { return send(limited) }, late)
	if err == nil || bounded.Ended(limited) == nil || bounded.Ended(ctx) != nil {
		return value, err
	}
	if errors.Is(err, bounded.ErrNoAnswer) {
		return value, errNoAnswer
	}
	return value, errTimedOut // the driver's words would read like the end of ctx
}

// pauseAfterRace separates statements that lost the same race. It returns false if ctx ended.
func pauseAfterRace(ctx context.Context, n int) bool {
	longest := min(shortestPause<<min(n, 10), longestPause)
	return bounded.Sleep(ctx, 1+jitter.N(longest))
}

// A limiter limits how many statements of one kind are sent at a time: those that cannot be batched must not use up
// the pool, and one broken connection must not make all callers of a batch open another.
type limiter struct {
	places chan struct{}

	mu       sync.Mutex
	timedOut chan struct{} // closed when the database does not answer a statement that has a place
}

func newLimiter(n int) *limiter {
	return &limiter{places: make(chan struct{}, n), timedOut: make(chan struct{})}
}

// take waits for a place. It returns ctx's error if that ends first, and errNoAnswer if the database does not answer
// a statement that has one: it would not answer this one either.
func (l *limiter) take(ctx context.Context) error {
	l.mu.Lock()
	timedOut := l.timedOut
	l.mu.Unlock()
	select {
	case l.places <- struct{}{}:
		return nil
	case <-timedOut:
		return errNoAnswer
	case <-ctx.Done():
		return ctx.Err()
	}
}

// cancel gives the place of a statement up that ended with err.
func (l *limiter) cancel(err error) {
	if errors.Is(err, errTimedOut) {
		l.mu.Lock()
		close(l.timedOut) // before the place is free, so that no waiter takes it
		l.timedOut = make(chan struct{})
		l.mu.Unlock()
	}
	<-l.places
}
