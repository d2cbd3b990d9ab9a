package leader

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/report"
)

// shortestPause is the first pause of [candidate.sitOut].
const shortestPause = 10 * time.Millisecond

// A candidate is an elector that does not lead.
type candidate struct {
	*view

	registry *sqllock.Registry
	lock     *sqllock.JdbcLock
	opts     *Options
}

// campaign waits until the lease of the role is acquired, and begins the term. An error of the database is reported,
// and then campaign tries again.
func (c *candidate) campaign(ctx context.Context) (*term, error) {
	failures := backoff{most: c.lock.TTL() / 3}
	for ctx.Err() == nil {
		t, err := c.acquire(ctx)
		switch {
		case err == nil:
			return t, nil
		case ctx.Err() != nil:
			if cause := context.Cause(ctx); !errors.Is(err, cause) {
				err = joined(cause, err) // it has failed just before
			}
			return nil, err
		case errors.Is(err, sqllock.ErrClosed), errors.Is(err, sqllock.ErrInvalid):
			return nil, err
		}
		c.opts.reportError(err)
		c.pause(ctx, failures.next())
	}
	return nil, context.Cause(ctx)
}

// acquire waits for the lease until ctx ends. The lease must outlast ctx, so its context is not made from ctx, but
// has its values, and the term. A candidate stands by, so its wait is not reported.
func (c *candidate) acquire(ctx context.Context) (*term, error) {
	t := newTerm()
	lasting, cancel := context.WithCancelCause(context.WithValue(report.Unreported(context.WithoutCancel(ctx), c.role), termKey{c.view}, t))
	stop := context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) })
	lease, err := c.lock.Lock(lasting)
	switch ended := !stop(); {
	case ended && err == nil: // both at once
		return nil, joined(context.Cause(ctx), lease.Unlock(ctx))
	case ended:
		return nil, context.Cause(ctx)
	case err != nil:
		cancel(nil)
		return nil, err
	}
	t.begin(ctx, lease, cancel)
	return t, nil
}

// letOthersLead waits before the next campaign, if this elector has ended the term t itself. It returns false if ctx
// has ended.
//
// A function that returns at once, within shortestBackoff, must not have the lock acquired and released all the time:
// each such term after another doubles the pause.
func (c *candidate) letOthersLead(ctx context.Context, t *term, quick *backoff) bool {
	switch {
	case errors.Is(t.result, sqllock.ErrLockLost):
		return ctx.Err() == nil // another has been able to lead
	case t.cause == nil && t.lasted() < shortestBackoff:
		if !c.pause(ctx, quick.next()) {
			return false
		}
	default:
		*quick = backoff{most: quick.most}
	}
	return c.sitOut(ctx)
}

// pause waits for d, or until the registry is closed. It returns false if ctx has ended.
func (c *candidate) pause(ctx context.Context, d time.Duration) bool {
	for end := time.Now().Add(d); !c.isClosed(); {
		left := time.Until(end)
		if left <= 0 {
			return true
		}
		if !bounded.Sleep(ctx, min(left, c.registry.IdleBetweenTries())) {
			return false
		}
	}
	return true
}

// isClosed reports whether the registry is closed.
func (c *candidate) isClosed() bool {
	_, err := c.registry.Obtain(c.role)
	return errors.Is(err, sqllock.ErrClosed)
}

// sitOut waits until another elector leads, for SitOut at most, or until the registry is closed, which the next
// campaign reports. It returns false if ctx has ended.
//
// If it misses the term of an elector that then sits out too, the role is vacant. A candidate takes over within
// IdleBetweenTries. So the row is read often at first, with pauses of an eighth of the time that has passed; later as
// often as a candidate polls it.
func (c *candidate) sitOut(ctx context.Context) bool {
	limited, cancel := context.WithTimeout(ctx, c.opts.SitOut)
	defer cancel()
	began, longest := time.Now(), min(c.registry.IdleBetweenTries(), c.opts.ObserveEvery)
	for !c.isClosed() {
		other, err := c.read(limited)
		pause := min(max(time.Since(began)/8, shortestPause), longest)
		if err == nil && other.Holder != "" || !bounded.Sleep(limited, pause) {
			return ctx.Err() == nil
		}
	}
	return true
}
