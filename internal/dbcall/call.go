// Package dbcall sends a statement as often, and waits for its answer as long, as a policy says, and says what its error
// means to the caller. It knows no statement and no table.
package dbcall

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// A Policy says how long, and how often, a statement is sent. Those of the lock table are in locktable/policies.go.
type Policy struct {
	Op string // what an [Error] says was done, or ""
	// Races is how often the statement is sent again after a lost race.
	Races int
	// Pinned is for how long it is sent again while a transaction has the row pinned.
	Pinned time.Duration
	// Lockless is for reads that lock no row. What blocks one, a locked table or a node of a cluster that lags
	// behind, is then no pinned row.
	Lockless bool
	// Answer is how long each answer may take, or as long as the claim's time-to-live if that is longer, unless the limit
	// is Exact. A batch has a limit of its own. 0 means as long as ctx lasts, or the renewer allows.
	Answer time.Duration
	Exact  bool
}

// Always is for statements that are sent again after every lost race, until ctx ends.
const Always = int(^uint(0) >> 1)

// maxOldPlans is how often a statement is sent again, whatever the policy, since the server answers that its plan is
// old. A driver prepares it anew, but a pooler may map it to the same old one each time.
const maxOldPlans = 10

// A testPatience is the value that WithTestPatience gives a context.
type testPatience struct{}

// WithTestPatience is for tests alone: how fast the machine is must not decide what they find. It returns a context with
// which a table is opened that waits for so long at least for each answer, also about names; what is asked before, and
// the first connection of a pool, wait as long, too.
func WithTestPatience(ctx context.Context, least time.Duration) context.Context {
	return context.WithValue(ctx, testPatience{}, least)
}

// TestPatience returns what [WithTestPatience] has given ctx, or 0.
func TestPatience(ctx context.Context) time.Duration {
	least, _ := ctx.Value(testPatience{}).(time.Duration)
	return least
}

// The pause after the n-th lost race is random, up to shortestPause doubled n times or longestPause.
const (
	shortestPause = time.Millisecond
	longestPause  = 64 * time.Millisecond
)

// A Retry counts how often a statement was sent.
type Retry struct {
	Policy

	Server Server
	Began  time.Time // when it was sent for the first time

	resent time.Time // when it was sent last, if that was not the first time
	n      int
	plans  int // how often of them with an old plan
}

// Again reports whether to send the statement, which has failed with err, again: after a lost race, or while a row is
// pinned, as the policy allows. It pauses before.
func (r *Retry) Again(ctx context.Context, err error) bool {
	if r.Server.IsOf(err, sqltext.OldPlan) {
		r.plans++
	}
	again := r.Server.IsRace(err) && r.n < r.Races && r.plans <= maxOldPlans || r.Server.IsBlocked(err) && time.Since(r.Began) < r.Pinned
	r.n++
	if !again || !PauseAfterRace(ctx, r.n-1) {
		return false
	}
	r.resent = time.Now()
	return true
}

// Explain makes an [*Error] of the last error.
func (r *Retry) Explain(ctx context.Context, err error) error {
	answered := r.Server.IsNotNow(err)
	err = r.Server.Explain(ctx, r.Op, err)
	if e := (*Error)(nil); !answered && errors.As(err, &e) && (e.Kind == Ended || e.Kind == NoAnswer) {
		sent := r.Began
		if !r.resent.IsZero() {
			sent = r.resent
		}
		e.Silent = time.Since(sent)
	}
	if r.Lockless && Is(err, PinnedRow) || r.plans > maxOldPlans && Is(err, Race) { // a waiter would try on after a race
		err = &Error{Op: r.Op, Kind: Failed, Err: errors.Unwrap(err)}
	}
	return err
}

// Call returns what send returns, which sends a statement: again, as p allows. It waits for send, whose limit is its own:
// see [CallInTime]. Statements that are batched are sent again by a [Retry] of their own.
func Call[T any](ctx context.Context, s Server, p Policy, send func(context.Context) (T, error)) (T, error) {
	for r := (Retry{Policy: p, Server: s, Began: time.Now()}); ; {
		value, err := send(ctx)
		if err == nil {
			return value, nil
		}
		if !r.Again(ctx, err) {
			return value, r.Explain(ctx, err)
		}
	}
}

// CallInTime is [Call], but it returns a moment after ctx or the time for an answer has ended at the latest, even if the
// driver ignores its context. Therefore send must not write to variables of its caller. late, unless it is nil, gets the
// answer of a driver that was left behind. ttl is that of the claim, if there is one.
func CallInTime[T any](ctx context.Context, s Server, p Policy, ttl time.Duration, send func(context.Context) (T, error), late func(T, error)) (T, error) {
	return Call(ctx, s, p, func(ctx context.Context) (T, error) { return Await(ctx, p.Limit(ttl, s.TestPatience), send, late) })
}

// Limit is how long the answer about a claim may take, at least for least unless the limit is Exact; or 0 for no limit.
func (p Policy) Limit(ttl, least time.Duration) time.Duration {
	if p.Answer == 0 || p.Exact {
		return p.Answer
	}
	return max(p.Answer, ttl, least)
}

// Await returns what send returns, or ErrTimedOut if that takes longer than limit, unless that is 0. The error is
// bounded.ErrNoAnswer as well if send was left behind.
func Await[T any](ctx context.Context, limit time.Duration, send func(context.Context) (T, error), late func(T, error)) (T, error) {
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
	return value, ErrTimedOut // the driver's words would read like the end of ctx
}

// PauseAfterRace separates statements that lost the same race. It returns false if ctx ended.
func PauseAfterRace(ctx context.Context, n int) bool {
	longest := min(shortestPause<<min(n, 10), longestPause)
	return bounded.Sleep(ctx, 1+jitter.N(longest))
}

// A Limiter limits how many statements of one kind are sent at a time: those that cannot be batched must not use up
// the pool, and one broken connection must not make all callers of a batch open another.
type Limiter struct {
	places chan struct{}

	mu       sync.Mutex
	timedOut chan struct{} // closed when the database does not answer a statement that has a place
}

// NewLimiter returns a limiter for n statements at a time.
func NewLimiter(n int) *Limiter {
	return &Limiter{places: make(chan struct{}, n), timedOut: make(chan struct{})}
}

// Take waits for a place. It returns ctx's error if that ends first, and errNoAnswer if the database does not answer
// a statement that has one: it would not answer this one either.
func (l *Limiter) Take(ctx context.Context) error {
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

// Done gives back the place of a statement that has ended with err.
func (l *Limiter) Done(err error) {
	if errors.Is(err, ErrTimedOut) {
		l.mu.Lock()
		close(l.timedOut) // before the place is free, so that no waiter takes it
		l.timedOut = make(chan struct{})
		l.mu.Unlock()
	}
	<-l.places
}
