package sqllock

import (
	"context"
	"time"
)

// A leaseContext is the context of a lease. It looks at the clock when asked, so that a
// holder that was stopped past its lease's end finds it done, whichever runs
// first: the holder or the timer. It carries the lease.
type leaseContext struct {
	context.Context
	hold *hold
}

func (c *leaseContext) Done() <-chan struct{} {
	c.hold.check()
	return c.Context.Done()
}

func (c *leaseContext) Err() error {
	c.hold.check()
	return c.Context.Err()
}

func (c *leaseContext) Value(key any) any {
	if of, ok := key.(carriedFor); ok && of.registry == c.hold.registry {
		return c
	}
	return c.Context.Value(key)
}

// carriedFor is the key under which contexts carry the leases of a registry, the
// innermost first.
type carriedFor struct{ registry *Registry }

// carried returns the hold of key in this registry that ctx carries, or nil.
func (r *Registry) carried(ctx context.Context, key string) *hold {
	c, _ := ctx.Value(carriedFor{r}).(*leaseContext)
	for c != nil && c.hold.name != key {
		c, _ = c.Context.Value(carriedFor{r}).(*leaseContext)
	}
	if c == nil {
		return nil
	}
	return c.hold
}

// A tenure is a context that lasts as long as a hold.
type tenure struct {
	hold   *hold
	values context.Context
}

func (t *tenure) Deadline() (time.Time, bool) { return t.hold.deadline(), true }
func (t *tenure) Done() <-chan struct{}       { return t.hold.ended() }
func (t *tenure) Value(key any) any           { return t.values.Value(key) }

func (t *tenure) Err() error {
	if t.hold.isOver() {
		return context.DeadlineExceeded
	}
	return nil
}
