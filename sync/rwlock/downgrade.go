package rwlock

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seats"
)

// Downgrade turns the write lock into a read lock, without another writer in between: it acquires a read
// lease while lease, the write lease, is held, and then unlocks that. It waits only for the database.
//
// The context of the read lease is made from ctx, which must not be made from that of
// lease, since that ends. So ctx is, for example, the one that was given to [Lock.Lock]. If
// the write lock was entered several times, it is held until the others unlock it, too.
//
// On an error there is no read lease, and lease is what it was: unlock it. The errors are
//
//   - [sqllock.ErrNotHeld] if lease is nil, was unlocked, or is not of this key in this registry.
//   - [sqllock.ErrLockLost] if it is lost, also meanwhile.
//   - [sqllock.ErrInvalid] if ctx is made from the context of lease.
//   - [sqllock.ErrNotAcquired] if there are [MaxReaders] readers, which all must be the caller's; on
//     SQLite also if others write to the file at every try; or if ctx has ended, and then ctx's own.
//   - [sqllock.ErrDatabase], [sqllock.ErrClosed] and [sqllock.ErrCapacity].
//
// If the row of the write lock cannot be released, Downgrade returns the read lease all the same. The
// row stays as after an error of [sqllock.Lease.Unlock], and keeps others out until its time-to-live
// ends.
func (l *Lock) Downgrade(ctx context.Context, lease *sqllock.Lease) (*sqllock.Lease, error) {
	if err := l.checkDowngrade(ctx, lease); err != nil {
		return nil, err
	}
	r := reading{call{l, ctx, ctx, true}, lease.Context()}
	read, err := r.attempt()
	if lost := l.checkDowngrade(ctx, lease); isRefused(err) && lost != nil {
		return nil, lost // another writer has come meanwhile
	}
	if err != nil {
		return nil, r.failed(err)
	}
	downgraded := false
	defer func() {
		if !downgraded { // or if an observer has panicked
			seats.Release(ctx, read)
		}
	}()
	if err := lease.Unlock(ctx); errors.Is(err, sqllock.ErrLockLost) {
		return nil, err // a writer may have come and gone before the reader's row was there
	}
	downgraded = true
	return read, nil
}

// checkDowngrade returns why lease cannot be turned into a read lease with ctx.
func (l *Lock) checkDowngrade(ctx context.Context, lease *sqllock.Lease) error {
	if err := l.readers.CheckTerms(l.terms); err != nil {
		return err
	}
	held, err := l.readers.Registry().LeaseFrom(lease.Context(), l.Key()) //nolint:contextcheck // it is asked for its lease alone
	switch {
	case err != nil:
		return err
	case held != lease:
		return fmt.Errorf("%w: %q: the lease to be downgraded is another's, or was unlocked", sqllock.ErrNotHeld, l.Key())
	case slices.Contains(l.readers.Registry().LeasesFrom(ctx), lease):
		return seats.Invalid("the read lease of %q cannot be made from the context of its write lease, which ends", l.Key())
	}
	return nil
}
