package rwlock

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/seats"
)

// RLock acquires the read lock, waiting for as long as ctx lasts. Other readers can hold it at the
// same time. The context of the lease is made from ctx. If a writer waits, RLock waits until that
// has had the lock.
//
//   - If ctx carries a read lease of this lock, RLock enters it again at once, even if a
//     writer waits: see [sqllock.JdbcLock.Lock].
//   - If ctx carries a write lease of this lock, or a plain lease of its key, RLock does not wait for
//     that. The read lease may outlast it only if it is made by [Lock.Downgrade].
//   - The lease has a fencing token, which fences nothing: it is not comparable with those of other
//     readers or of writers.
//
// On an error the caller does not hold the lock. The errors are
//
//   - [sqllock.ErrNotAcquired] if ctx ends first, and ctx's own. It is a [*sqllock.HeldError] with the
//     key of the lock. Its Holder is the writer or, if there are [MaxReaders] readers, the one whose
//     lease ends first; "" if none is known.
//   - [sqllock.ErrDatabase], which ends the wait at once. If the database does not answer a caller that
//     locks the turn, those that wait behind it in this process get the same error.
//   - [sqllock.ErrLockLost] if ctx carries a lease of this lock that is lost.
//   - [sqllock.ErrInvalid] for a time-to-live that no lease can have.
//   - [sqllock.ErrClosed] and [sqllock.ErrCapacity], as those of [sqllock.Registry.Obtain].
func (l *Lock) RLock(ctx context.Context) (*sqllock.Lease, error) {
	return l.read(ctx, seats.Forever)
}

// TryRLock acquires the read lock if no writer holds it or waits for its readers to leave. Otherwise
// it returns [sqllock.ErrNotAcquired]. It does not wait, except for the database. The other errors
// are those of [Lock.RLock].
//
// A TryRLock and a [Lock.TryLock] at the same moment may both be refused. So may one of two
// TryRLocks, if a writer's lease has ended and its row is left: the other one takes that row over.
func (l *Lock) TryRLock(ctx context.Context) (*sqllock.Lease, error) {
	return l.read(ctx, seats.NotAtAll)
}

// TryRLockFor is RLock with a limit to the wait, after which it returns [sqllock.ErrNotAcquired]. 0 means
// TryRLock; a negative wait gives [sqllock.ErrInvalid].
func (l *Lock) TryRLockFor(ctx context.Context, wait time.Duration) (*sqllock.Lease, error) {
	if err := l.readers.CheckWait(wait); err != nil {
		return nil, err
	}
	return l.read(ctx, wait)
}

// ExecuteRLocked runs fn while it holds the read lock, and waits for that as long as ctx lasts. The
// lock is released when fn returns or panics. The context of fn is that of the lease, and ends with
// cause [sqllock.ErrLockLost] when that is lost: a writer may then get in.
//
// The errors are those of [Lock.RLock], before fn has run, and fn's own, joined with that of
// [sqllock.Lease.Unlock]. A nil fn gives [sqllock.ErrInvalid].
func (l *Lock) ExecuteRLocked(ctx context.Context, fn func(context.Context) error) error {
	return seats.Execute(ctx, func() (*sqllock.Lease, error) { return l.RLock(ctx) }, fn)
}

// ExecuteRLockedFor is ExecuteRLocked with a limit to the wait for the lock: see [Lock.TryRLockFor].
func (l *Lock) ExecuteRLockedFor(ctx context.Context, wait time.Duration, fn func(context.Context) error) error {
	return seats.Execute(ctx, func() (*sqllock.Lease, error) { return l.TryRLockFor(ctx, wait) }, fn)
}

// A reading is one call that acquires the read lock.
type reading struct {
	call

	writer context.Context //nolint:containedctx // carries the caller's lease of the write lock's row, if it has one
}

// read acquires the read lock for ctx, the caller's.
func (l *Lock) read(ctx context.Context, wait time.Duration) (*sqllock.Lease, error) {
	if err := l.readers.CheckTerms(l.terms); err != nil {
		return nil, err
	}
	if _, err := l.own(ctx); err != nil {
		return nil, err
	}
	if _, err := l.readers.Own(ctx); err != nil {
		return nil, err
	}
	waiting, cancel := seats.Limited(ctx, wait)
	defer cancel()
	r := reading{call{l, ctx, waiting, wait == seats.NotAtAll}, ctx}
	// It does not matter whether others wait, as it does for a writer: while the write lock is free,
	// a reader takes nothing away from those that wait, and need not wait behind them.
	lease, err := r.attempt()
	if err == nil {
		return lease, nil
	}
	if !r.goesOn(err) {
		return nil, r.failed(err)
	}
	return l.readers.AcquireInTurn(ctx, waiting, r.attemptInTurn)
}

// attempt acquires the read lock. It returns [sqllock.ErrNotAcquired] if a writer is there, or no seat
// is free.
func (r *reading) attempt() (*sqllock.Lease, error) {
	if lease, err := r.reenter(); lease != nil || err != nil {
		return lease, err
	}
	return r.takeSeat()
}

// attemptInTurn is attempt for a caller that tries again and again: it writes nothing while there is
// a writer.
func (r *reading) attemptInTurn() (*sqllock.Lease, error) {
	if err := r.checkNoWriter(); err != nil {
		return nil, err
	}
	return r.takeSeat()
}

// reenter enters the read lease that ctx carries, even if a writer waits: that waits for this lease.
// It returns neither a lease nor an error if ctx carries none.
func (r *reading) reenter() (*sqllock.Lease, error) {
	carried := r.readers.Carried(r.ctx)
	if len(carried) == 0 {
		return nil, nil //nolint:nilnil // see above
	}
	lease, err := r.readers.TryLock(r.ctx, r.waiting, r.terms, r.readers.SeatOf(carried[0]))
	switch {
	case err != nil:
		return nil, r.failed(err)
	case lease.Holder() != carried[0].Holder():
		// It was unlocked just now, so this is a new lease of its seat, like any other.
		return r.admit(lease)
	}
	return lease, nil
}

// takeSeat acquires a seat chosen at random, so that readers seldom choose the same, and then sees
// whether a writer is there.
func (r *reading) takeSeat() (*sqllock.Lease, error) {
	var refused error
	seat := r.readers.AnySeat()
	for range seats.MaxRaces {
		lease, err := r.readers.TryLock(r.ctx, r.waiting, r.terms, seat)
		if err == nil {
			return r.admit(lease)
		}
		if refused = r.failed(err); !isRefused(refused) || r.waiting.Err() != nil {
			break
		}
		if seat, err = r.chooseSeat(); err != nil {
			return nil, err
		}
	}
	return nil, refused
}

// chooseSeat returns the key of a seat that is free.
func (r *reading) chooseSeat() (string, error) {
	read, err := r.readers.Read(r.waiting, r.Key())
	if err != nil {
		return "", r.failed(err)
	}
	if row, held := read.Held(r.Key()); held && !r.isOwn(row) {
		return "", r.refused(row)
	}
	free := read.Free(r.readers.Carried(r.ctx))
	if len(free) == 0 {
		return "", r.refused(read.Next())
	}
	return free[0], nil
}

// admit returns the lease of a seat if no writer is there. Otherwise, or on an error, it unlocks the
// lease.
func (r *reading) admit(lease *sqllock.Lease) (*sqllock.Lease, error) {
	admitted := false
	defer func() {
		if !admitted { // or if an observer has panicked
			seats.Release(r.waiting, lease)
		}
	}()
	if err := r.checkNoWriter(); err != nil {
		return nil, err
	}
	lease, err := r.readers.Alive(r.ctx, r.waiting, lease)
	admitted = err == nil
	return lease, err
}

// checkNoWriter returns [sqllock.ErrNotAcquired] if a writer, or a plain lock of the key, has the write
// lock's row, unless that is the caller itself.
func (r *reading) checkNoWriter() error {
	row, ok, err := r.readers.Registry().Repository().Peek(r.waiting, r.Key())
	switch {
	case err != nil:
		return r.failed(err)
	case !ok, row.Released(), r.isOwn(row): // a released row may stay: to take it over would keep out other readers
		return nil
	case row.Expired(), r.readers.IsLeftover(row):
		return r.takeOver(r.Key())
	}
	return r.refused(row)
}

// isOwn reports whether row, the write lock's, is the caller's own. As its lease lasts now, no other
// writer has had the row since it was read.
func (r *reading) isOwn(row sqllock.Row) bool {
	own, err := r.own(r.writer)
	return err == nil && own != nil && own.Holder() == row.Holder
}
