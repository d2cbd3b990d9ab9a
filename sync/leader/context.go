package leader

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
)

// A termContext is the context of a term. It is made from that of the lease, which it carries, and ends with Run's
// context too. As a lease's does, it reads the clock when it is asked: after a pause of the process, lead may run
// before the timers that would end the context.
type termContext struct {
	context.Context

	run    context.Context
	lease  context.Context
	cancel context.CancelCauseFunc
	stop   func() bool // unsubscribes from run
	forget context.CancelCauseFunc
}

// newTermContext returns the context of a term under lease, in a Run with ctx. forget ends the context that the
// lease's was made from.
func newTermContext(ctx context.Context, lease *sqllock.Lease, forget context.CancelCauseFunc) *termContext {
	inner, cancel := context.WithCancelCause(lease.Context())
	return &termContext{
		Context: inner, run: ctx, lease: lease.Context(), cancel: cancel, forget: forget,
		stop: context.AfterFunc(ctx, func() { cancel(context.Cause(ctx)) }),
	}
}

// Deadline implements context.Context.
func (c *termContext) Deadline() (time.Time, bool) { return c.run.Deadline() }

// Done implements context.Context.
func (c *termContext) Done() <-chan struct{} {
	c.check()
	return c.Context.Done()
}

// Err implements context.Context.
func (c *termContext) Err() error {
	c.check()
	err := c.Context.Err()
	if ended := c.run.Err(); err != nil && ended != nil && errors.Is(context.Cause(c.Context), context.Cause(c.run)) {
		return ended // it may be DeadlineExceeded
	}
	return err
}

// check ends the context if that of the lease or of Run has ended.
func (c *termContext) check() {
	_ = c.lease.Err() // the lease reads the clock, and ends all that is made from its context
	if c.run.Err() != nil {
		c.end(context.Cause(c.run))
	}
}

// end ends the context.
func (c *termContext) end(cause error) { c.cancel(cause) }

// close releases what the context holds on to, once the lease is released.
func (c *termContext) close() {
	c.stop()
	c.forget(nil)
}
