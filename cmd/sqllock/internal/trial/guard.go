package trial

import (
	"context"
	"database/sql"
	"time"

	"github.com/sqllock/sqllock"
)

// valueTable is the table, after the prefix, whose only row a guarded transaction changes from 0 to 1.
const valueTable = "VALUE"

// touch is how often a transaction that waits sends something: the server may end one that is idle.
const touch = time.Second

// guard keeps a guarded transaction open until it is told to commit, whatever becomes of the lease meanwhile.
func (w *worker) guard(ctx context.Context, lease *sqllock.Lease) error {
	row, _, err := w.repository.Peek(ctx, lockKey)
	if err != nil {
		return err
	}
	tx, err := w.db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	if err := lease.Guard(ctx, tx); err != nil {
		return err
	}
	if err := w.report(event{Kind: guarding, Left: row.Left}); err != nil {
		return err
	}
	if err := w.waitForOrder(ctx, tx); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, "UPDATE "+w.values+" SET N = 1"); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	return w.report(event{Kind: committed})
}

// waitForOrder waits for the order to commit a transaction, and returns the first error of that transaction.
func (w *worker) waitForOrder(ctx context.Context, tx *sql.Tx) (err error) {
	for {
		select {
		case <-w.orders:
			return err
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-time.After(touch):
			if err == nil {
				_, err = tx.ExecContext(ctx, "SELECT 1")
			}
		}
	}
}

// take reads what the guarded transaction of the holder before writes.
func (w *worker) take(ctx context.Context) error {
	e := event{Kind: taken, At: time.Now()}
	if err := w.db.GetContext(ctx, &e.Written, "SELECT N FROM "+w.values); err != nil {
		return err
	}
	return w.report(e)
}
