package contract

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// transactionTests are about the application's own transactions on the same pool.
var transactionTests = []test{
	inEachCell("AnOpenTransactionOfTheCallerIsNotJoined", func(f *fixture) {
		tx := check.Value(f.cell.DB.BeginTxx(f.Context(), nil))(f)
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		f.checkAcquired(r, "k", holder, true)
		f.checkRenewed(r, holder, ttl, true)
		f.must(tx.Rollback())
		f.checkAcquired(r, "k", holder, true) // the rollback did not undo it
		f.checkDeleted(r, "k", holder, true)
	}),
	inEachCell("ASnapshotOfTheCallerHidesNothing", func(f *fixture) {
		tx := check.Value(f.cell.DB.BeginTxx(f.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead}))(f)
		defer func() { f.must(tx.Rollback()) }()
		var n int
		f.must(tx.GetContext(f.Context(), &n, "SELECT COUNT(*) FROM INT_LOCK"))
		r := f.process()
		holder := f.acquireRow(r, "k", ttl)
		f.checkAcquired(r, "k", holder, true)
		f.checkDeleted(r, "k", holder, true)
		f.checkAcquired(r, "k", holder, false)
	}),
	inEachCell("ALockAroundATransactionLosesNoUpdate", func(f *fixture) {
		const processes, rounds = 3, 4
		table := f.counter()
		f.concurrently(processes, 1, func(r *sqllock.Registry) error {
			for range rounds {
				if err := f.increment(r, table); err != nil {
					return err
				}
			}
			return nil
		})
		var n int
		f.must(f.cell.DB.GetContext(f.Context(), &n, "SELECT N FROM "+table))
		equal(f, "counter", n, processes*rounds)
	}),
}

// increment reads and writes the counter in two steps. Without the lock, updates would be
// lost.
func (f *fixture) increment(r *sqllock.Registry, table string) error {
	return r.ExecuteLocked(f.Context(), "counter", func(ctx context.Context) error {
		var n int
		if err := f.cell.DB.GetContext(ctx, &n, "SELECT N FROM "+table); err != nil {
			return err
		}
		tx, err := f.cell.DB.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET N = %d", table, n+1)); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	})
}

func (f *fixture) exec(text string) {
	f.Helper()
	f.must(check.ErrorOf(f.cell.DB.ExecContext(context.WithoutCancel(f.Context()), text)))
}
