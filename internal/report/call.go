package report

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/observe"
)

// A Call is what is noted of one call that locks, to be reported. A nil one, of a
// registry without observers, notes nothing. Only the caller uses it, apart from what mu guards.
type Call struct {
	observers Observers
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

// Begin reports that a caller asks for a lock.
func (o Observers) Begin(ctx context.Context, asked observe.AcquireStart) *Call {
	one := &Call{observers: o, asked: asked, began: time.Now()}
	one.ctx, one.done = o.acquire(ctx, asked)
	return one
}

// NoteDequeued notes that the caller is the first in the queue of its process.
func (o *Call) NoteDequeued() {
	if o != nil && o.dequeued.IsZero() { // the caller of a joint lock may queue again
		o.dequeued = time.Now()
	}
}

// NoteAttempt notes a try to acquire the row.
func (o *Call) NoteAttempt(batched bool) {
	if o != nil {
		o.attempts++
		o.batched = batched
	}
}

// NotePoll notes a read of the row.
func (o *Call) NotePoll() {
	if o != nil {
		o.polls++
	}
}

// NoteHolder notes who holds the lock, if that is known.
func (o *Call) NoteHolder(row locktable.Row) {
	if o != nil && row.Holder != "" && !row.IsReleased() {
		o.heldBy = row.Holder
	}
}

// Answer returns what is reported of a call that has returned err.
func (o *Call) Answer(err error) observe.AcquireEnd {
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

// ReportAnswer reports the answer of the caller, and then the end of its lease, if that came before.
// A caller that gets an error was never told of a lease: the end of one that it could not be given,
// because it had given up or the registry was closed, is not reported.
func (o *Call) ReportAnswer(e observe.AcquireEnd) {
	if e.Err == nil {
		defer o.reportEarlyEnd() // also if an observer panics
	}
	ForEach(o.done, func(done func(observe.AcquireEnd)) { done(e) })
}

// reportEarlyEnd reports the end of the lease, if that came before the answer.
func (o *Call) reportEarlyEnd() {
	o.mu.Lock()
	o.holds = true
	end := o.end
	o.mu.Unlock()
	if end != nil {
		o.observers.leaseEnd(o.ctx, *end)
	}
}

// ReportEnd reports the end of the lease, once its acquisition was reported.
func (o *Call) ReportEnd(e observe.LeaseEnd) {
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

// Context returns the context that the observers have made for the call.
func (o *Call) Context() context.Context { return o.ctx }
