package engine

import (
	"context"
	"database/sql"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/transaction"
)

// Transact runs fn in a guarded transaction. ctx is the context of u.
func (u *Use) Transact(ctx context.Context, db *sql.DB, opts *sql.TxOptions, fn func(context.Context, *sql.Tx) error) error {
	// ctx ends the transaction only until COMMIT is sent. A driver that watches the
	// context would cut the COMMIT short, and return what reads as if none had been sent.
	txCtx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	detach := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	tx, err := u.beginGuarded(ctx, txCtx, db, opts)
	if err != nil {
		return err
	}
	u.hold.lease.notePin(1)
	defer u.hold.lease.notePin(-1)
	defer rollBack(ctx, tx, nil) // after Commit it does nothing
	if err := fn(ctx, tx.Tx); err != nil {
		rollBack(ctx, tx, err)
		return err
	}
	if ctx.Err() != nil || !detach() {
		return u.explain(ctx, "commit under", sql.ErrTxDone)
	}
	return u.commit(ctx, tx)
}

// guardRaces is how often a transaction whose Guard has lost a race is begun again. Nothing has
// happened in it yet.
const guardRaces = 10

// beginGuarded begins a transaction that lasts as long as txCtx, and guards it. ctx is the
// context of u.
func (u *Use) beginGuarded(ctx, txCtx context.Context, db *sql.DB, opts *sql.TxOptions) (*transaction.Tx, error) {
	for races := 0; ; races++ {
		tx, err := bounded.Do(ctx, bounded.Grace, func() (*transaction.Tx, error) {
			return u.hold.locks.table.Guards.Begin(txCtx, db, opts)
		}, rollBackLate)
		if err != nil {
			return nil, u.explain(ctx, "begin a transaction under", err)
		}
		if err = u.Guard(ctx, locktable.OverSQL(tx)); err == nil {
			return tx, nil
		}
		rollBack(ctx, tx, err)
		if races == guardRaces || !dbcall.Is(err, dbcall.Race) {
			return nil, err
		}
	}
}

// rollBack rolls tx back because of err, if it is not nil. Not every driver watches a context while it waits for an answer
// to the end of a transaction.
func rollBack(ctx context.Context, tx *transaction.Tx, err error) {
	_, _ = bounded.Do(ctx, bounded.Grace, func() (struct{}, error) { return struct{}{}, tx.Abort(err) }, nil)
}

// commit commits tx. If that fails the outcome is unknown, whatever has become of ctx,
// unless the database refused it.
func (u *Use) commit(ctx context.Context, tx *transaction.Tx) error {
	_, err := bounded.Do(ctx, bounded.Grace, func() (struct{}, error) { return struct{}{}, tx.Commit() }, nil)
	if !u.hold.locks.table.Guards.IsRefusedCommit(err) {
		ctx = context.WithoutCancel(ctx) // its end does not explain the error
	}
	return u.explain(ctx, "commit under", err)
}

// explain makes an error of this package of one of the caller's pool.
func (u *Use) explain(ctx context.Context, op string, err error) error {
	return failure.Of(u.hold.locks.table.Explain(ctx, op, err), u.key)
}

// rollBackLate ends a transaction that was begun when the caller had gone.
func rollBackLate(tx *transaction.Tx, err error) {
	if err == nil {
		_ = tx.Rollback()
	}
}
