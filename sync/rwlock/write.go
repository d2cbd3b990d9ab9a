package rwlock

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/internal/seats"
)

// Lock acquires the write lock, waiting for as long as ctx lasts: until no other writer and
// no reader holds it. As soon as it has the writer's row it keeps new readers out, and
// waits for the present ones. The context of the lease is made from ctx.
//
//   - If ctx carries a write lease of this lock, Lock enters it again at once: see
//     [sqllock.JdbcLock.Lock].
//   - If ctx carries a read lease of this lock, Lock returns [sqllock.ErrInvalid] at once: it would
//     wait for itself.
//   - If ctx carries a plain lease of the key, Lock enters that, and waits for the present readers.
//   - If Lock has waited for readers, it renews the lease for its whole time-to-live before it returns.
//     [sqllock.RegistryOptions.MaxHold] counts from when it had the writer's row, so the wait for readers
//     counts too.
//   - The fencing token is higher than those of all earlier write leases.
//
// On an error the caller does not hold the lock. The errors are
//
//   - [sqllock.ErrNotAcquired] if ctx ends first, and ctx's own. It is a [*sqllock.HeldError] with the
//     key of the lock. Its Holder is a writer, a reader, or the waiter whose turn it is; "" if none is
//     known.
//   - [sqllock.ErrDatabase], which ends the wait at once. If the database does not answer a caller that
//     locks the turn, those that wait behind it in this process get the same error.
//   - [sqllock.ErrLockLost] if ctx carries a write lease of this lock, or a plain lease of its key, that
//     is lost.
//   - [sqllock.ErrInvalid] if ctx carries a read lease, or for a time-to-live that no lease can have.
//   - [sqllock.ErrClosed] and [sqllock.ErrCapacity], as those of [sqllock.Registry.Obtain].
func (l *Lock) Lock(ctx context.Context) (*sqllock.Lease, error) {
	return l.write(ctx, seats.Forever)
}

// TryLock acquires the write lock if no writer and no reader holds it, and no waiter has the turn.
// Otherwise it returns [sqllock.ErrNotAcquired]. It does not wait, except for the database. The
// other errors are those of [Lock.Lock].
func (l *Lock) TryLock(ctx context.Context) (*sqllock.Lease, error) {
	return l.write(ctx, seats.NotAtAll)
}

// TryLockFor is Lock with a limit to the wait, after which it returns [sqllock.ErrNotAcquired]. 0
// means TryLock; a negative wait gives [sqllock.ErrInvalid].
func (l *Lock) TryLockFor(ctx context.Context, wait time.Duration) (*sqllock.Lease, error) {
	if err := l.readers.CheckWait(wait); err != nil {
		return nil, err
	}
	return l.write(ctx, wait)
}

// ExecuteLocked runs fn while it holds the write lock, and waits for that as long as ctx lasts. The
// lock is released when fn returns or panics. The context of fn is that of the lease, and ends with
// cause [sqllock.ErrLockLost] when that is lost.
//
// The errors are those of [Lock.Lock], before fn has run, and fn's own, joined with that of
// [sqllock.Lease.Unlock]. A nil fn gives [sqllock.ErrInvalid].
func (l *Lock) ExecuteLocked(ctx context.Context, fn func(context.Context) error) error {
	return seats.Execute(ctx, func() (*sqllock.Lease, error) { return l.Lock(ctx) }, fn)
}

// ExecuteLockedFor is ExecuteLocked with a limit to the wait for the lock: see [Lock.TryLockFor].
func (l *Lock) ExecuteLockedFor(ctx context.Context, wait time.Duration, fn func(context.Context) error) error {
	return seats.Execute(ctx, func() (*sqllock.Lease, error) { return l.TryLockFor(ctx, wait) }, fn)
}

// A writing is one call that acquires the write lock.
type writing struct {
	call
}

// write acquires the write lock for ctx, the caller's.
func (l *Lock) write(ctx context.Context, wait time.Duration) (*sqllock.Lease, error) {
	if err := l.readers.CheckTerms(l.terms); err != nil {
		return nil, err
	}
	own, err := l.own(ctx)
	if err != nil {
		return nil, err
	}
	writes := l.isWriter(ctx)
	if !writes && len(l.readers.Carried(ctx)) > 0 {
		return nil, seats.Invalid("the write lock of %q inside its read lock: it would wait for itself; unlock first", l.Key())
	}
	waiting, cancel := seats.Limited(ctx, wait)
	defer cancel()
	w := writing{call{l, ctx, waiting, wait == seats.NotAtAll}}
	if own != nil {
		lease, err := w.enter(own, writes)
		if _, lost := l.own(ctx); err != nil && lost != nil {
			return nil, lost // ctx has ended with it
		}
		return lease, err
	}
	if w.once || !l.readers.IsWaitedFor() {
		lease, err := w.attempt()
		if err == nil {
			return lease, nil
		}
		if !w.goesOn(err) {
			return nil, w.failed(err)
		}
	}
	return l.readers.AcquireInTurn(ctx, waiting, w.attemptInTurn)
}

// enter enters a lease of the write lock's row that ctx carries. If the caller has not got the write
// lock with that, it waits for the readers. It does not wait in turn: the one whose turn it is may
// wait for this lease.
func (w *writing) enter(own *sqllock.Lease, writes bool) (*sqllock.Lease, error) {
	lease, err := w.readers.TryLock(w.ctx, w.waiting, w.terms, w.Key())
	switch {
	case err != nil:
		return nil, w.failed(err)
	case writes && lease.Holder() == own.Holder(): // or it was unlocked just now, and this is a new lease
		w.markWriter(lease)
		return lease, nil
	}
	if w.once {
		return w.complete(lease, (*drain).try)
	}
	defer w.readers.Await(w.waiting)()
	return w.complete(lease, (*drain).wait)
}

// attempt acquires the write lock if it is free, and it is nobody's turn.
func (w *writing) attempt() (*sqllock.Lease, error) {
	if err := w.checkFree(); err != nil {
		return nil, err
	}
	lease, err := w.readers.TryLock(w.ctx, w.waiting, w.terms, w.Key())
	if err != nil {
		return nil, w.failed(err)
	}
	return w.completeNew(lease, (*drain).try) // out of turn it does not wait for readers that came in meanwhile
}

// checkFree returns [sqllock.ErrNotAcquired] if a writer, a reader or a waiter is there.
func (w *writing) checkFree() error {
	read, err := w.readers.Read(w.waiting, w.Key())
	if err != nil {
		return w.failed(err)
	}
	if row, held := read.Held(w.Key()); held {
		return w.refused(row)
	}
	if reader := read.Next(); reader.Holder != "" {
		return w.refused(reader)
	}
	if waiter, taken := read.Turn(); taken {
		return w.refused(waiter)
	}
	return nil
}

// attemptInTurn waits for the write lock's row, and then for the readers.
func (w *writing) attemptInTurn() (*sqllock.Lease, error) {
	lease, err := w.lockRow()
	if err != nil {
		return nil, w.failed(err)
	}
	return w.completeNew(lease, (*drain).wait)
}

// completeNew is complete for a row that this call has acquired. If it loses the row meanwhile, it returns
// [sqllock.ErrNotAcquired]: nothing was done under it, so the caller tries again.
func (w *writing) completeNew(lease *sqllock.Lease, drained func(*drain) error) (*sqllock.Lease, error) {
	lease, err := w.complete(lease, drained)
	if errors.Is(err, sqllock.ErrLockLost) && !errors.Is(err, sqllock.ErrDatabase) {
		return nil, w.refused(sqllock.Row{})
	}
	return lease, err
}

// lockRow waits for the write lock's row, as a plain lock does: among those of this process in the
// order of their arrival.
func (w *writing) lockRow() (lease *sqllock.Lease, err error) {
	lock, err := w.readers.Registry().Obtain(w.Key())
	if err != nil {
		return nil, err
	}
	lock = w.terms.Apply(lock)
	ctx, done := report.Counted(w.ctx, w.Key()) // by InTurn
	defer done()
	if end, limited := w.waiting.Deadline(); limited {
		lease, err = lock.TryLockFor(ctx, max(time.Until(end), 1)) // 0 would not be the end of a wait
	} else {
		lease, err = lock.Lock(ctx)
	}
	if err == nil {
		w.readers.Watch(lease)
	}
	return lease, err
}

// complete makes a lease of the write lock's row one of the write lock, when drained finds that no
// reader is in. On an error it unlocks the lease.
func (w *writing) complete(lease *sqllock.Lease, drained func(*drain) error) (*sqllock.Lease, error) {
	complete := false
	defer func() {
		if !complete { // or if an observer has panicked
			seats.Release(w.waiting, lease)
		}
	}()
	if err := drained(newDrain(&w.call, lease)); err != nil {
		return nil, err
	}
	lease, err := w.readers.Alive(w.ctx, w.waiting, lease)
	if err != nil {
		return nil, err
	}
	complete = true
	w.markWriter(lease)
	return lease, nil
}

// A writer marks the write leases of a LOCK_KEY. That distinguishes a write lease from a plain lease of the key, whose
// holder does not have the write lock, since it has not waited for readers.
type writer struct{ lockKey string }

// isWriter reports whether ctx carries a write lease that was not unlocked.
func (l *Lock) isWriter(ctx context.Context) bool {
	return slices.ContainsFunc(l.readers.Registry().LeasesFrom(ctx), func(lease *sqllock.Lease) bool {
		return engine.UseOf(lease).Mark().Load() == l.mark
	})
}

// markWriter makes lease a write lease.
func (l *Lock) markWriter(lease *sqllock.Lease) { engine.UseOf(lease).Mark().Store(l.mark) }
