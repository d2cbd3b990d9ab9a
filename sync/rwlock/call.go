package rwlock

import (
	"context"
	"errors"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seats"
)

// A call is one call that locks.
type call struct {
	*Lock

	ctx     context.Context //nolint:containedctx // the lease is made from it; it lives as long as the call
	waiting context.Context //nolint:containedctx // made from it; it ends the wait
	once    bool            // it tries once and does not wait
}

// isRefused reports whether err means that the lock was not acquired because it is held.
func isRefused(err error) bool { return errors.Is(err, sqllock.ErrNotAcquired) }

// goesOn reports whether the call, which has failed with err, is to wait.
func (c *call) goesOn(err error) bool {
	return !c.once && seats.GoesOn(c.waiting, err)
}

// refused returns the error of a call that found row held.
func (c *call) refused(row sqllock.Row) error { return c.readers.NotAcquired(c.ctx, row) }

// failed returns the error of a call in which err came.
func (c *call) failed(err error) error { return c.readers.Failed(c.ctx, c.waiting, err) }

// takeOver takes rows over whose leases have ended, so that no transaction which they have guarded is
// open any more.
func (c *call) takeOver(keys ...string) error {
	if err := c.readers.TakeOver(c.ctx, c.waiting, c.terms, keys...); err != nil {
		return c.failed(err)
	}
	return nil
}

// own returns the lease of the write lock's row that ctx carries, or nil. The row may be held by a
// plain lock of the key. The error says why the lease is over, if it was not unlocked.
func (l *Lock) own(ctx context.Context) (*sqllock.Lease, error) {
	own, err := l.readers.Registry().LeaseFrom(ctx, l.Key())
	if errors.Is(err, sqllock.ErrNotHeld) {
		return nil, nil //nolint:nilnil // see above
	}
	return own, err
}
