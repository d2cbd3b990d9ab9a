package sqllock

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A leaseContext is the context of a lease. It looks at the clock when asked, so that a
// holder that was stopped past its lease's end finds it done, whichever runs
// first: the holder or the timer. It carries the lease.
type leaseContext struct {
	context.Context
	lease *Lease
}

func (c *leaseContext) Done() <-chan struct{} {
	c.lease.hold.check()
	return c.Context.Done()
}

func (c *leaseContext) Err() error {
	c.lease.hold.check()
	return c.Context.Err()
}

func (c *leaseContext) Value(key any) any {
	if of, ok := key.(carriedFor); ok && of.registry == c.lease.hold.registry {
		return c
	}
	return c.Context.Value(key)
}

// carriedFor is the key under which contexts carry the leases of a registry, the
// innermost first.
type carriedFor struct{ registry *Registry }

// carried returns the hold of a LOCK_KEY in this registry that ctx carries, or nil.
func (r *Registry) carried(ctx context.Context, lockKey string) *hold {
	if leases := r.leasesIn(ctx, lockKey); len(leases) > 0 {
		return leases[0].hold
	}
	return nil
}

// leasesIn returns the leases of a LOCK_KEY in this registry that ctx carries, the innermost
// first.
func (r *Registry) leasesIn(ctx context.Context, lockKey string) (leases []*Lease) {
	c, _ := ctx.Value(carriedFor{r}).(*leaseContext)
	for c != nil {
		if c.lease.hold.lockKey == lockKey {
			leases = append(leases, c.lease)
		}
		c, _ = c.Context.Value(carriedFor{r}).(*leaseContext)
	}
	return leases
}

// LeaseFrom returns the lease of key in this registry that ctx carries: the one whose
// [Lease.Context] ctx is, or is made from. It sends nothing to the database.
//
// Inside [Registry.ExecuteLocked] it gives fn its lease, for [Lease.Token],
// [Lease.Guard], [Lease.RenewFor] or [Lease.UnlockAfter]. Anywhere else it asserts
// that the caller works under the lock.
//
// The error is [ErrNotHeld] if ctx carries no lease of key, or only ones that were
// unlocked; [ErrLockLost] if the lease is lost; [ErrClosed] after Close; [ErrInvalid] for a
// bad key. A ctx may carry leases of several keys and registries. Of several leases of one key LeaseFrom
// returns the innermost that was not unlocked. Whether ctx itself has ended makes no
// difference.
//
// The lease is the caller's own, not a further entry: Unlock gives it back for all
// who use it. fn may therefore unlock early; the release after fn then does nothing and
// returns the same result, see [Lease.Unlock]. In [Registry.ExecuteLockedTx] leave that
// to the registry: the transaction pins the row, so Unlock and UnlockAfter return
// [ErrPinned] there, and end the context, which rolls the transaction back.
func (r *Registry) LeaseFrom(ctx context.Context, key string) (*Lease, error) {
	lockKey, err := r.repository.LockKey(key)
	if err != nil {
		return nil, err
	}
	for _, lease := range r.leasesIn(ctx, lockKey) {
		switch err := lease.alive(); {
		case err == nil:
			return lease, nil
		case !errors.Is(err, ErrNotHeld):
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %q is not locked by this context", ErrNotHeld, key)
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
