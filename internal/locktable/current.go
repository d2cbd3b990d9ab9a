package locktable

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/stmt"
)

// Where several servers write, one of them may not have applied yet what another one has committed.
// Certification makes up for that when a row is written. It does not when a row is read, or when a
// statement finds no row to change: such an answer counts only from a server that has caught up.

// readsLate reports whether the answer to a plain read may be older than what was committed.
func (d *database) readsLate() bool { return d.statements.PeekCurrent.Text != "" }

// peekCurrent is peekMany for reads that decide: it misses nothing that was committed before.
func (d *database) peekCurrent(ctx context.Context, v stmt.Values) (rows map[string]Row, err error) {
	if !d.readsLate() {
		return d.peekMany(ctx, v)
	}
	err = d.inParts(v.Len(), func(from, to int) error {
		try := d.pool.TryWhole()
		for try.Next(ctx) {
			var some map[string]Row
			some, try.Err = d.selectCurrent(ctx, try.Conn, v.Part(from, to))
			rows = merged(rows, some)
		}
		return try.Err
	})
	return rows, err
}

// explainNoMember returns why the server of a connection is no member of the cluster, so that what it
// answers does not count.
func (d *database) explainNoMember(ctx context.Context, conn stmt.Executor) error {
	found, err := probe.AskCluster(ctx, conn, d.statements.Cluster)
	if err != nil {
		return err
	}
	return cmp.Or(d.home.LeftBy(found), probe.ErrNotAMember) // or it has come back meanwhile
}

// selectCurrent returns the rows of v's keys that there are, after the server of conn has caught up. Its error
// may have the connection closed.
func (d *database) selectCurrent(ctx context.Context, conn stmt.Executor, v stmt.Values) (map[string]Row, error) {
	rows, err := d.askCurrent(ctx, conn, v)
	if err != nil {
		return nil, err
	}
	if slices.ContainsFunc(rows, func(row Row) bool { return row.Region == "" }) {
		return nil, d.explainNoMember(ctx, conn)
	}
	return byKey(rows), nil
}

// askCurrent leaves the session as it was. If it cannot, its error has the connection closed.
func (d *database) askCurrent(ctx context.Context, conn stmt.Executor, v stmt.Values) (rows []Row, err error) {
	if d.statements.BeforeCurrent != "" {
		if _, err := conn.ExecContext(ctx, d.statements.BeforeCurrent); err != nil {
			return nil, err
		}
		defer func() {
			if _, failed := conn.ExecContext(ctx, d.statements.AfterCurrent); failed != nil {
				err = errors.Join(err, failed)
			}
		}()
	}
	return stmt.SelectRows(ctx, conn, d.statements.PeekCurrent, v)
}

// selectHeld returns those of v's rows that carry their holders and have not expired.
func (d *database) selectHeld(ctx context.Context, v stmt.Values) (held map[stmt.RowID]bool, err error) {
	err = d.inParts(len(v.Rows), func(from, to int) error {
		some, _, err := d.selectRowIDs(ctx, d.pool.Try(), d.statements.HeldAll, v.Part(from, to))
		held = merged(held, some)
		return err
	})
	return held, err
}

// heldCurrent is what HeldAll answers, by a server that has caught up.
func (d *database) heldCurrent(ctx context.Context, v stmt.Values) (map[stmt.RowID]bool, error) {
	if !d.readsLate() {
		return d.selectHeld(ctx, v)
	}
	rows, err := d.peekCurrent(ctx, v)
	held := make(map[stmt.RowID]bool, len(rows))
	for _, c := range v.Rows {
		if rows[c.LockKey].IsHeldBy(c) {
			held[c.ID()] = true
		}
	}
	return held, err
}
