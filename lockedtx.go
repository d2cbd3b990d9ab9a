package sqllock

import (
	"context"
	"database/sql"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/transaction"
)

// ExecuteLockedTx runs fn in a transaction of db that can commit only under the lock: it
// waits for the lock, begins a transaction, guards it (see [Lease.Guard]), runs fn,
// commits, and releases the lock. opts are those of the transaction, and may be nil. fn's
// context is that of the lease, and is the transaction's too: if the lease is lost
// meanwhile, the transaction is rolled back. fn must not end tx. If fn enters the lock again, the lease is
// not renewed: tx has its row pinned.
//
// ExecuteLockedTx returns nil exactly if the transaction was committed. A release that
// fails then is no error: the row expires. Otherwise nothing was committed, with one
// exception: an [ErrDatabase] of the commit itself, whose answer may have been lost. Once
// COMMIT was sent, every error is an ErrDatabase, also if ctx ended meanwhile, except for a
// refusal of the database.
//
// The error is fn's, or says with [ErrLockLost], [ErrNotAcquired] or [ErrDatabase] what
// came between. If fn panics the transaction is rolled back and the lock is released.
//
// db is a pool of the database that the lock is in. That should be the application's,
// while the registry has a small one of its own.
func (l *JdbcLock) ExecuteLockedTx(ctx context.Context, db *sql.DB, opts *sql.TxOptions, fn func(context.Context, *sql.Tx) error) error {
	if err := checkTransaction(db, fn); err != nil {
		return err
	}
	lease, err := l.Lock(ctx)
	return executeTx(ctx, lease, err, db, opts, fn)
}

// ExecuteLockedTxFor is ExecuteLockedTx with a limit to the wait for the lock, after which
// it returns [ErrNotAcquired] without having begun a transaction. 0 means a single try.
func (l *JdbcLock) ExecuteLockedTxFor(ctx context.Context, wait time.Duration, db *sql.DB, opts *sql.TxOptions, fn func(context.Context, *sql.Tx) error) error {
	if err := checkTransaction(db, fn); err != nil {
		return err
	}
	lease, err := l.TryLockFor(ctx, wait)
	return executeTx(ctx, lease, err, db, opts, fn)
}

// checkTransaction checks what a guarded transaction needs, before the lock is acquired.
func checkTransaction(db *sql.DB, fn func(context.Context, *sql.Tx) error) error {
	if db == nil {
		return invalid("a transaction needs a database")
	}
	if fn == nil {
		return errNoFunction()
	}
	return nil
}

// executeTx runs fn in a guarded transaction under a lease, and releases it.
func executeTx(ctx context.Context, lease *Lease, err error, db *sql.DB, opts *sql.TxOptions, fn func(context.Context, *sql.Tx) error) error {
	committed := false
	err = execute(ctx, lease, err, func(ctx context.Context) error {
		err := lease.transact(ctx, db, opts, fn)
		committed = err == nil
		return err
	})
	if committed {
		return nil
	}
	return err
}

// transact runs fn in a guarded transaction. ctx is the context of l.
func (l *Lease) transact(ctx context.Context, db *sql.DB, opts *sql.TxOptions, fn func(context.Context, *sql.Tx) error) error {
	// ctx ends the transaction only until COMMIT is sent. A driver that watches the
	// context would cut the COMMIT short, and return what reads as if none had been sent.
	txCtx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	detach := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	tx, err := l.beginGuarded(ctx, txCtx, db, opts)
	if err != nil {
		return err
	}
	l.hold.notePin(1)
	defer l.hold.notePin(-1)
	defer rollBack(ctx, tx) // after Commit it does nothing
	if err := fn(ctx, tx.Tx.Tx); err != nil {
		return err
	}
	if ctx.Err() != nil || !detach() {
		return l.explain(ctx, "commit under", sql.ErrTxDone)
	}
	return l.commit(ctx, tx)
}

// guardRaces is how often a transaction whose Guard has lost a race is begun again. Nothing has
// happened in it yet.
const guardRaces = 10

// beginGuarded begins a transaction that lasts as long as txCtx, and guards it. ctx is the
// context of l.
func (l *Lease) beginGuarded(ctx, txCtx context.Context, db *sql.DB, opts *sql.TxOptions) (*transaction.Tx, error) {
	for races := 0; ; races++ {
		tx, err := bounded.Do(ctx, bounded.Grace, func() (*transaction.Tx, error) {
			return l.hold.config.table.Begin(txCtx, db, opts)
		}, rollBackLate)
		if err != nil {
			return nil, l.explain(ctx, "begin a transaction under", err)
		}
		if err = l.Guard(ctx, tx); err == nil {
			return tx, nil
		}
		rollBack(ctx, tx)
		if races == guardRaces || !locktable.Is(err, locktable.Race) {
			return nil, err
		}
	}
}

// rollBack rolls tx back. Not every driver watches a context while it waits for an answer to
// the end of a transaction.
func rollBack(ctx context.Context, tx *transaction.Tx) {
	_, _ = bounded.Do(ctx, bounded.Grace, func() (struct{}, error) { return struct{}{}, tx.Rollback() }, nil)
}

// commit commits tx. If that fails the outcome is unknown, whatever has become of ctx,
// unless the database refused it.
func (l *Lease) commit(ctx context.Context, tx *transaction.Tx) error {
	_, err := bounded.Do(ctx, bounded.Grace, func() (struct{}, error) { return struct{}{}, tx.Commit() }, nil)
	if !l.hold.config.table.IsRefusedCommit(err) {
		ctx = context.WithoutCancel(ctx) // its end does not explain the error
	}
	return l.explain(ctx, "commit under", err)
}

// explain makes an error of this package of one of the caller's pool.
func (l *Lease) explain(ctx context.Context, op string, err error) error {
	return failure(l.hold.config.table.Explain(ctx, op, err), l.key)
}

// rollBackLate ends a transaction that was begun when the caller had gone.
func rollBackLate(tx *transaction.Tx, err error) {
	if err == nil {
		_ = tx.Rollback()
	}
}
