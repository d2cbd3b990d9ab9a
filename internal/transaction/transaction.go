package transaction

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync/atomic"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

// A Tx is a transaction with the connection that it has to itself. End it with Commit or
// Rollback; as with [sql.Tx], what comes second returns sql.ErrTxDone.
type Tx struct {
	*sqlx.Tx

	ctx     context.Context //nolint:containedctx // that of the transaction, as sql.Tx has it
	conn    *sqlx.Conn
	dialect dialect.Dialect
	ending  atomic.Bool // Commit or Rollback was called
}

// Begin begins a transaction. Like [OnConn] it passes over connections that turn out to be closed, and
// over those that are still inside another transaction.
func Begin(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions, d dialect.Dialect) (begun *Tx, err error) {
	_, err = onConn(ctx, db, d, func(conn *sqlx.Conn) error {
		tx, err := conn.BeginTxx(ctx, opts)
		if err != nil {
			giveBack(conn, d.Embedded)
			return err
		}
		begun = &Tx{Tx: tx, ctx: ctx, conn: conn, dialect: d}
		return nil
	}, nil)
	return begun, err
}

// Commit commits the transaction. It returns an error also if the server has committed it, and has stopped
// waiting for its synchronous standby: see [ErrUnreplicated].
func (t *Tx) Commit() error {
	return t.end(func() error { return replicated(t.ctx, t.conn, t.dialect, t.Tx.Commit()) })
}

// Rollback rolls the transaction back.
func (t *Tx) Rollback() error { return t.end(t.Tx.Rollback) }

// end runs Commit or Rollback, and gives the connection back. If the end of the context has
// rolled the transaction back before, it is not known with what success.
func (t *Tx) end(run func() error) error {
	if t.ending.Swap(true) {
		return sql.ErrTxDone // Close of the connection would wait for the first call
	}
	err := run()
	usable := err == nil || t.dialect.IsOver(err)
	if errors.Is(err, sql.ErrTxDone) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		go giveBack(t.conn, usable) // it waits for that rollback, and the caller need not
		return err
	}
	giveBack(t.conn, usable)
	return err
}

// giveBack gives a connection back to its pool, or closes it.
func giveBack(conn *sqlx.Conn, usable bool) {
	if !usable {
		_ = conn.Raw(func(any) error { return driver.ErrBadConn }) // has the pool close it
	}
	_ = conn.Close() // the transaction's own error says more
}
