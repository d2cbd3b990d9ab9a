package contract

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"strings"

	"github.com/sqllock/sqllock"
)

// transactionTests are about the transactions of others: the application's own,
// on the same pool.
var transactionTests = []test{
	{"AnOpenTransactionOfTheCallerIsNotJoined", func(w *world) {
		tx, err := w.cell.DB.BeginTxx(w.Context(), nil)
		w.must(err)
		r := w.process()
		holder := w.taken(r, "k", ttl)
		w.held(r, "k", holder, ttl, true)
		w.renewed(r, holder, ttl, true)
		w.must(tx.Rollback())
		w.held(r, "k", holder, ttl, true) // the rollback undid nothing of ours
		w.deleted(r, "k", holder, true)
	}},
	{"ASnapshotOfTheCallerHidesNothing", func(w *world) {
		tx, err := w.cell.DB.BeginTxx(w.Context(), &sql.TxOptions{Isolation: sql.LevelRepeatableRead})
		w.must(err)
		defer func() { w.must(tx.Rollback()) }()
		var n int
		w.must(tx.GetContext(w.Context(), &n, "SELECT COUNT(*) FROM INT_LOCK"))
		r := w.process()
		holder := w.taken(r, "k", ttl)
		w.held(r, "k", holder, ttl, true)
		w.deleted(r, "k", holder, true)
		w.held(r, "k", holder, ttl, false)
	}},
	{"ALockAroundATransactionLosesNoUpdate", func(w *world) {
		const processes, rounds = 3, 4
		table := strings.ReplaceAll(w.region, "region ", "COUNTER_")
		w.exec("CREATE TABLE " + table + " (N INTEGER NOT NULL)")
		w.Cleanup(func() { w.exec("DROP TABLE " + table) })
		w.exec("INSERT INTO " + table + " VALUES (0)")
		w.crowd(processes, 1, func(r *sqllock.Registry) error {
			for range rounds {
				if err := w.increment(r, table); err != nil {
					return err
				}
			}
			return nil
		})
		var n int
		w.must(w.cell.DB.GetContext(w.Context(), &n, "SELECT N FROM "+table))
		same(w, "counter", n, processes*rounds)
	}},
}

// increment reads and writes the counter in two steps, which only the lock keeps
// together.
func (w *world) increment(r *sqllock.Registry, table string) error {
	return r.ExecuteLocked(w.Context(), "counter", func(ctx context.Context) error {
		var n int
		if err := w.cell.DB.GetContext(ctx, &n, "SELECT N FROM "+table); err != nil {
			return err
		}
		tx, err := w.cell.DB.BeginTxx(ctx, nil)
		if err != nil {
			return err
		}
		if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET N = %d", table, n+1)); err != nil {
			return errors.Join(err, tx.Rollback())
		}
		return tx.Commit()
	})
}

func (w *world) exec(text string) {
	w.Helper()
	_, err := w.cell.DB.ExecContext(context.WithoutCancel(w.Context()), text)
	w.must(err)
}
