package transaction

import (
	"context"
	"database/sql"
	"errors"
	"sync/atomic"

	"github.com/sqllock/sqllock/dialect"
)

// A Tx is a transaction with the connection that it has to itself. End it with Commit or Rollback; as with [sql.Tx],
// what comes second returns sql.ErrTxDone.
type Tx struct {
	*sql.Tx

	ctx     context.Context //nolint:containedctx // that of the transaction, as sql.Tx has it
	conn    *sql.Conn
	dialect *dialect.Dialect
	ending  atomic.Bool // Commit or Rollback was called
}

// Begin begins a transaction. Like a [Try] it passes over connections that turn out to be closed, and over those that
// are still inside another transaction.
func (p Pool) Begin(ctx context.Context, opts *sql.TxOptions) (begun *Tx, err error) {
	try := p.Try()
	try.begins = true
	for try.Next(ctx) {
		tx, err := try.Conn.BeginTx(ctx, opts)
		if try.Err = err; err != nil {
			giveBack(try.Conn, p.Dialect.Embedded)
			continue
		}
		begun = &Tx{Tx: tx, ctx: ctx, conn: try.Conn, dialect: p.Dialect}
	}
	return begun, try.Err
}

// Commit commits the transaction. It returns an error also if the server has committed it, and has stopped waiting
// for its synchronous standby: see [ErrUnreplicated].
func (t *Tx) Commit() error {
	return t.end(func() error { return replicated(t.ctx, t.conn, t.dialect, t.Tx.Commit()) })
}

// Rollback rolls the transaction back.
func (t *Tx) Rollback() error { return t.end(t.Tx.Rollback) }

// end runs Commit or Rollback, and gives the connection back. If the end of the context has rolled the transaction
// back before, it is not known with what success.
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
