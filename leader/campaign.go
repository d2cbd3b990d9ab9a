package leader

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock"
)

// campaign waits until the lease of the role is acquired. An error of the database is
// reported, and then campaign tries again. cancel ends the context of the lease.
func (e *Elector) campaign(ctx context.Context) (lease *sqllock.Lease, cancel context.CancelCauseFunc, err error) {
	failures := backoff{most: e.lock.TTL() / 3}
	for ctx.Err() == nil {
		lease, cancel, err = e.acquire(ctx)
		switch {
		case err == nil:
			return lease, cancel, nil
		case ctx.Err() != nil:
			return nil, nil, err
		case errors.Is(err, sqllock.ErrClosed), errors.Is(err, sqllock.ErrInvalid):
			return nil, nil, err
		}
		e.opts.reportError(err)
		sleep(ctx, failures.next())
	}
	return nil, nil, context.Cause(ctx)
}

// acquire waits for the lease until ctx ends. The lease must outlast ctx, so its context is
// not made from ctx, but has its values.
func (e *Elector) acquire(ctx context.Context) (*sqllock.Lease, context.CancelCauseFunc, error) {
	lasting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	lease, err := e.lock.Lock(lasting)
	switch ended := !stop(); {
	case ended && err == nil: // both at once
		return nil, nil, join(context.Cause(ctx), lease.Unlock(ctx))
	case ended:
		return nil, nil, context.Cause(ctx)
	case err != nil:
		cancel(nil)
		return nil, nil, err
	}
	return lease, cancel, nil
}

// letOthersLead waits before the next campaign, if this elector has ended the term t itself. It
// returns false if ctx has ended.
//
// A function that returns at once must not have the lock acquired and released all the time:
// each such term after another doubles the pause.
func (e *Elector) letOthersLead(ctx context.Context, t *term, quick *backoff) bool {
	switch {
	case errors.Is(t.result, sqllock.ErrLockLost):
		return ctx.Err() == nil // another has been able to lead
	case t.cause == nil && t.lasted() < quick.most:
		if !sleep(ctx, quick.next()) {
			return false
		}
	default:
		*quick = backoff{most: quick.most}
	}
	return e.sitOut(ctx)
}

// sitOut waits until another elector leads, for SitOut at most. It returns false if ctx has
// ended.
func (e *Elector) sitOut(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, e.opts.SitOut)
	defer cancel()
	for {
		other, err := e.read(limited)
		if err == nil && other.Holder != "" || !sleep(limited, untilNextRead(other, e.opts.ObserveEvery)) {
			return ctx.Err() == nil
		}
	}
}

// A backoff is a pause that doubles each time.
type backoff struct{ last, most time.Duration }

// shortestBackoff is the first pause of a backoff, unless most is shorter.
const shortestBackoff = 100 * time.Millisecond

// next returns the next pause, less up to a fifth at random, so that electors do not try in
// step.
func (b *backoff) next() time.Duration {
	b.last = min(max(2*b.last, shortestBackoff), b.most)
	return b.last - rand.N(b.last/5+1)
}
