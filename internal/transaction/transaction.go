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
	pass    pass
	dialect *dialect.Dialect
	ending  atomic.Bool // Commit or Rollback was called
	writes  bool        // the caller has not asked for a transaction that is read-only
	refused bool        // see isReadOnly
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
		begun = &Tx{Tx: tx, ctx: ctx, conn: try.Conn, pass: try.pass, dialect: p.Dialect, writes: opts == nil || !opts.ReadOnly}
	}
	return begun, try.Err
}

// Run runs fn in a transaction and commits that, unless fn fails: once more, in another transaction, if the connection
// was closed. So it must be safe to run it again. resent reports whether a COMMIT was sent before that may have been
// applied.
func (p Pool) Run(ctx context.Context, opts *sql.TxOptions, fn func(*Tx) error) (resent bool, err error) {
	resent, err = p.runOnce(ctx, opts, fn)
	if err == nil || p.Dialect.Classify(err) != dialect.Closed || ctx.Err() != nil {
		return false, err
	}
	_, err = p.runOnce(ctx, opts, fn)
	return resent, err
}

// runOnce reports whether it has sent COMMIT.
func (p Pool) runOnce(ctx context.Context, opts *sql.TxOptions, fn func(*Tx) error) (committed bool, err error) {
	tx, err := p.Begin(ctx, opts)
	if err != nil {
		return false, err
	}
	if err := fn(tx); err != nil {
		_ = tx.Abort(err) // a broken connection does that by itself; err says more
		return false, err
	}
	return true, tx.Commit()
}

// Commit commits the transaction. It returns an error also if the server has committed it, and has stopped waiting
// for its synchronous standby: see [ErrUnreplicated].
func (t *Tx) Commit() error {
	return t.end(func() error { return replicated(t.ctx, t.conn, t.dialect, t.Tx.Commit()) })
}

// Rollback rolls the transaction back.
func (t *Tx) Rollback() error { return t.end(t.Tx.Rollback) }

// Abort is Rollback after an error of a statement. One that was refused since the caller wants the transaction to be
// read-only says nothing about the server.
func (t *Tx) Abort(err error) error {
	return t.end(func() error {
		t.refused = t.writes && isReadOnly(t.dialect, err)
		return t.Tx.Rollback()
	})
}

// end runs Commit or Rollback, and gives the connection back. If the end of the context has rolled the transaction
// back before, it is not known with what success.
func (t *Tx) end(run func() error) error {
	if t.ending.Swap(true) {
		return sql.ErrTxDone // Close of the connection would wait for the first call
	}
	err := run()
	usable := (err == nil || t.dialect.IsOver(err)) && !t.refused
	if errors.Is(err, sql.ErrTxDone) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		go t.giveBack(usable) // it waits for that rollback, and the caller need not
		return err
	}
	t.giveBack(usable)
	return err
}

func (t *Tx) giveBack(usable bool) {
	giveBack(t.conn, usable)
	t.pass.leave()
}
