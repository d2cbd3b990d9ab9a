package engine

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/observe"
)

// observers are the observers of a registry.
type observers []*observe.Observer

// having returns those that a function selects. Nil ones are left out.
func (o observers) having(some func(*observe.Observer) bool) observers {
	return slices.DeleteFunc(slices.Clone(o), func(one *observe.Observer) bool { return one == nil || !some(one) })
}

// ofLocks returns those that are told of acquisitions and of the ends of leases.
func (o observers) ofLocks() observers {
	return o.having(func(one *observe.Observer) bool { return one.Acquire != nil || one.LeaseEnd != nil })
}

func (o observers) ofRenewals() observers {
	return o.having(func(one *observe.Observer) bool { return one.Renewal != nil })
}

// forEach calls a function with each of all, also with those after one for which it panics.
func forEach[T any](all []T, call func(T)) {
	if len(all) == 0 {
		return
	}
	defer forEach(all[1:], call)
	call(all[0])
}

// errObserver is the answer that observers have if another one has panicked in Acquire.
var errObserver = errors.New("sqllock: an observer has panicked")

// acquire reports that a caller asks for a lock. It returns the context of the last observer, and
// what to call with the answer: the observer that was told last is the first to have it.
func (o observers) acquire(ctx context.Context, e observe.AcquireStart) (_ context.Context, done []func(observe.AcquireEnd)) {
	told := false
	defer func() {
		slices.Reverse(done)
		if !told {
			forEach(done, func(end func(observe.AcquireEnd)) {
				end(observe.AcquireEnd{AcquireStart: e, Outcome: observe.OutcomeError, Err: errObserver})
			})
		}
	}()
	for _, one := range o {
		if one.Acquire == nil {
			continue
		}
		inner, end := one.Acquire(ctx, e)
		if inner != nil {
			ctx = inner
		}
		if end != nil {
			done = append(done, end)
		}
	}
	told = true
	return ctx, done
}

func (o observers) leaseEnd(ctx context.Context, e observe.LeaseEnd) {
	forEach(o, func(one *observe.Observer) {
		if one.LeaseEnd != nil {
			one.LeaseEnd(ctx, e)
		}
	})
}

func (o observers) renewal(ctx context.Context, e observe.Renewal) {
	for _, one := range o {
		one.Renewal(ctx, e)
	}
}

// An observation is what is noted of one call that locks, to be reported. A nil one, of a
// registry without observers, notes nothing. Only the caller uses it, apart from what mu guards.
type observation struct {
	observers observers
	ctx       context.Context // what Acquire returned
	done      []func(observe.AcquireEnd)
	asked     observe.AcquireStart
	began     time.Time
	dequeued  time.Time // when the caller was the first in the queue, or zero
	attempts  int
	polls     int
	heldBy    string
	batched   bool

	mu    sync.Mutex
	holds bool              // it was reported that the caller has the lock
	end   *observe.LeaseEnd // what came before that
}

// observe reports that a caller asks for a lock.
func (o observers) observe(ctx context.Context, asked observe.AcquireStart) *observation {
	one := &observation{observers: o, asked: asked, began: time.Now()}
	one.ctx, one.done = o.acquire(ctx, asked)
	return one
}

func (o *observation) noteDequeued() {
	if o != nil && o.dequeued.IsZero() { // the caller of a joint lock may queue again
		o.dequeued = time.Now()
	}
}

// noteAttempt notes a try to acquire the row.
func (o *observation) noteAttempt(batched bool) {
	if o != nil {
		o.attempts++
		o.batched = batched
	}
}

// notePoll notes a read of the row.
func (o *observation) notePoll() {
	if o != nil {
		o.polls++
	}
}

// noteHolder notes who holds the lock, if that is known.
func (o *observation) noteHolder(holder string) {
	if o != nil && holder != "" {
		o.heldBy = holder
	}
}

// answer returns what is reported of a call that has returned err.
func (o *observation) answer(err error) observe.AcquireEnd {
	took := time.Since(o.began)
	queued := took
	if !o.dequeued.IsZero() {
		queued = o.dequeued.Sub(o.began)
	}
	return observe.AcquireEnd{
		AcquireStart: o.asked, Outcome: outcomeOf(err, o.asked.Wait), Err: err, Took: took, Queued: queued,
		Attempts: o.attempts, Polls: o.polls, HeldBy: o.heldBy, Batched: o.batched,
	}
}

// reportAnswer reports the answer of the caller, and then the end of its lease, if that came before.
// A caller that gets an error was never told of a lease: the end of one that it could not be given,
// because it had given up or the registry was closed, is not reported.
func (o *observation) reportAnswer(e observe.AcquireEnd) {
	if e.Err == nil {
		defer o.reportEarlyEnd() // also if an observer panics
	}
	forEach(o.done, func(done func(observe.AcquireEnd)) { done(e) })
}

// reportEarlyEnd reports the end of the lease, if that came before the answer.
func (o *observation) reportEarlyEnd() {
	o.mu.Lock()
	o.holds = true
	end := o.end
	o.mu.Unlock()
	if end != nil {
		o.observers.leaseEnd(o.ctx, *end)
	}
}

// reportEnd reports the end of the lease, once its acquisition was reported.
func (o *observation) reportEnd(e observe.LeaseEnd) {
	o.mu.Lock()
	o.end = &e
	holds := o.holds
	o.mu.Unlock()
	if holds {
		o.observers.leaseEnd(o.ctx, e)
	}
}

// outcomeOf sums up err, the result of an acquisition that was asked to wait.
func outcomeOf(err error, wait time.Duration) observe.Outcome {
	switch {
	case err == nil:
		return observe.OutcomeAcquired
	case errors.Is(err, failure.ErrDatabase), errors.Is(err, failure.ErrCapacity), errors.Is(err, failure.ErrPinned):
		return observe.OutcomeError
	case errors.Is(err, failure.ErrLockLost):
		return observe.OutcomeLost
	case errors.Is(err, context.DeadlineExceeded):
		return observe.OutcomeTimeout
	case errors.Is(err, context.Canceled), errors.Is(err, failure.ErrClosed):
		return observe.OutcomeCancelled
	case !errors.Is(err, failure.ErrNotAcquired):
		return observe.OutcomeError
	case wait == 0:
		return observe.OutcomeHeld
	default:
		return observe.OutcomeTimeout
	}
}

// causeOf is the cause with which the context of a lease ends.
func causeOf(r observe.EndReason) error {
	switch {
	case r.Lost():
		return failure.ErrLockLost
	case r == observe.EndClosed:
		return failure.ErrClosed
	default:
		return nil
	}
}
