package locktable

import (
	"cmp"
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/transaction"
)

// Where several servers write, one of them may not have applied yet what another one has committed.
// Certification makes up for that when a row is written. It does not when a row is read, or when a
// statement finds no row to change: such an answer counts only from a server that has caught up.

// readsLate reports whether the answer to a plain read may be older than what was committed.
func (t *Table) readsLate() bool { return t.statements.peekCurrent.text != "" }

// peekCurrent is peekMany for reads that decide: it misses nothing that was committed before.
func (t *Table) peekCurrent(ctx context.Context, v values) (rows map[string]Row, err error) {
	if !t.readsLate() {
		return t.peekMany(ctx, v)
	}
	_, err = t.onCurrent(ctx, v, func(_ executor, found map[string]Row) error {
		rows = found
		return nil
	})
	return rows, err
}

// onCurrent runs fn on a connection whose server has caught up, with the rows of v's keys that there are.
// resent is as for [transaction.OnConn].
func (t *Table) onCurrent(ctx context.Context, v values, fn func(executor, map[string]Row) error) (resent bool, err error) {
	return transaction.Send(ctx, t.pool.db, t.dialect, func(conn *sqlx.Conn) error {
		rows, err := t.selectCurrent(ctx, conn, v)
		if err != nil {
			return err
		}
		found := make(map[string]Row, len(rows))
		for _, row := range rows {
			if row.Region == "" {
				return t.explainNoMember(ctx, conn)
			}
			found[row.LockKey] = row
		}
		return fn(conn, found)
	})
}

// explainNoMember returns why the server of a connection is no member of the cluster, so that what it
// answers does not count.
func (t *Table) explainNoMember(ctx context.Context, conn clusterReader) error {
	found, err := readCluster(ctx, conn, t.statements.cluster)
	if err != nil {
		return err
	}
	return cmp.Or(t.home.leftBy(found), errNotAMember) // or it has come back meanwhile
}

// selectCurrent leaves the session as it was. If it cannot, its error has the connection closed.
func (t *Table) selectCurrent(ctx context.Context, conn *sqlx.Conn, v values) (rows []Row, err error) {
	if t.statements.beforeCurrent != "" {
		if _, err := conn.ExecContext(ctx, t.statements.beforeCurrent); err != nil {
			return nil, err
		}
		defer func() {
			if _, failed := conn.ExecContext(ctx, t.statements.afterCurrent); failed != nil {
				err = errors.Join(err, failed)
			}
		}()
	}
	return selectRows(ctx, conn, t.statements.peekCurrent, v)
}

// A change is what a statement has done to a row.
type change struct {
	n      int64 // how many rows it has changed
	row    Row   // as it was before
	resent bool  // whether it may have been sent before
}

// execCurrent runs s, which has found no row of the claim to change, where the row is there if there is one.
// Where reads are not late it does nothing.
func (t *Table) execCurrent(ctx context.Context, s statement, v values) (done change, err error) {
	if !t.readsLate() {
		return change{}, nil
	}
	one := v
	one.keys = []string{v.LockKey}
	done.resent, err = t.onCurrent(ctx, one, func(db executor, rows map[string]Row) (err error) {
		if done.row = rows[v.LockKey]; done.row.Holder == v.Holder {
			done.n, err = exec(ctx, db, s, v)
		}
		return err
	})
	return done, err
}

// heldCurrent is what statements.heldAll answers, by a server that has caught up.
func (t *Table) heldCurrent(ctx context.Context, v values) (map[rowID]bool, error) {
	if !t.readsLate() {
		return t.selectRowIDs(ctx, t.statements.heldAll, v)
	}
	rows, err := t.peekCurrent(ctx, v)
	held := make(map[rowID]bool, len(rows))
	for _, c := range v.rows {
		if rows[c.LockKey].isHeldBy(c) {
			held[c.id()] = true
		}
	}
	return held, err
}
