package locktable

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/probe"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
)

// A database is where the table is: what its server is, and how its rows are read and changed. Each statement is sent once,
// or in parts where a message has no room for all rows. How often, and how long, is the policy of the verb that sends it.
type database struct {
	pool       transaction.Pool
	dialect    sqltext.Dialect
	server     dbcall.Server
	statements stmt.Statements
	region     string
	file       probe.File
	// home is the cluster that a server must be a member of to acquire.
	home probe.Cluster
	room room
}

// BatchTimeout is how long the answer to a batch is waited for.
func (d *database) BatchTimeout() time.Duration { return max(batchTimeout, d.server.TestPatience) }

// Explain makes an [*dbcall.Error] of an error that op has ended with under ctx. It returns nil for nil.
func (d *database) Explain(ctx context.Context, op string, err error) error {
	return d.server.Explain(ctx, op, err)
}

// count returns the number that s answers.
func (d *database) count(ctx context.Context, s stmt.Statement, v stmt.Values) (int, error) {
	return transaction.On(ctx, d.pool, func(conn *sql.Conn) (n int, err error) {
		err = stmt.QueryFirst(ctx, conn, s, v, func(rows *sql.Rows) error { return rows.Scan(&n) })
		return n, err
	})
}

func (d *database) selectRows(ctx context.Context, s stmt.Statement, v stmt.Values) ([]Row, error) {
	return transaction.On(ctx, d.pool, func(conn *sql.Conn) ([]Row, error) { return stmt.SelectRows(ctx, conn, s, v) })
}

// selectRowIDs returns the rows that s answers, or those that it has changed.
func (d *database) selectRowIDs(ctx context.Context, try transaction.Try, s stmt.Statement, v stmt.Values) (ids map[stmt.RowID]bool, resent bool, err error) {
	for try.Next(ctx) {
		ids, try.Err = stmt.SelectRowIDs(ctx, try.Conn, s, v)
	}
	return ids, try.Resent, try.Err
}

// Statements for many rows are divided here: by inParts where a message has no room for all of them, and by
// dividing where one of them fails the others.

// A room is for how many rows the messages have room, as far as a server or a driver has refused one for its size
// (max_allowed_packet). MySQL closes the connection then, so that is not to be found out by each message.
type room struct {
	rows atomic.Int64 // 0 for any number
}

// of returns how many of n rows one message may have.
func (r *room) of(n int) int {
	if most := int(r.rows.Load()); most > 0 {
		return min(n, most)
	}
	return n
}

// hasRefused reports whether a message of n rows was refused for its size. The next one has half as many.
func (d *database) hasRefused(n int, err error) bool {
	if n <= 1 || !d.server.IsOf(err, sqltext.TooLarge) {
		return false
	}
	d.room.rows.Store(int64(d.room.of((n + 1) / 2))) // another caller may know better
	return true
}

// inParts has send called for n rows, which need not be changed together: for all at once, or for some after the
// other.
func (d *database) inParts(n int, send func(from, to int) error) error {
	for from := 0; from < n; {
		to := from + d.room.of(n-from)
		switch err := send(from, to); {
		case err == nil:
			from = to
		case !d.hasRefused(to-from, err):
			return err
		}
	}
	return nil
}

// merged returns the results of parts in one map, without another one if there is one part.
func merged[K comparable, V any](all, some map[K]V) map[K]V {
	if all == nil {
		return some
	}
	maps.Copy(all, some)
	return all
}

// dividing has send called for n rows. If it fails because of one of them, as isOne says, each half is tried by
// itself, down to one row, which is left out.
func dividing(n int, isOne func(error) bool, send func(from, to int) error) error {
	var try func(from, to int) error
	try = func(from, to int) error {
		err := send(from, to)
		switch {
		case err == nil || !isOne(err):
			return err
		case to-from <= 1:
			return nil
		}
		middle := (from + to) / 2
		return cmp.Or(try(from, middle), try(middle, to))
	}
	return try(0, n)
}
