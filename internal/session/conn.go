package session

import (
	"context"
	"database/sql/driver"
	"sync/atomic"
	"time"
)

// A session has what database/sql asks of a connection.
type session interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.NamedValueChecker
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
}

// A conn is a connection of a pool that Open makes. When its session is old, it goes on with another one: see [rotation].
// It is used by one goroutine at a time.
type conn struct {
	*life

	rotation *rotation
}

// A life is a session of a conn, with what is known of it. It prepares statements where the driver does not: see [preparer].
type life struct {
	session
	preparer

	since        time.Time
	unreplicated atomic.Bool
}

// ExecContext implements driver.ExecerContext.
func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	query = c.rotation.rewrite(query)
	result, err := c.exec(ctx, c.session, query, args)
	if c.hasLost(err) {
		result, err = c.session.ExecContext(ctx, query, args)
	}
	return result, err
}

// QueryContext implements driver.QueryerContext.
func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	query = c.rotation.rewrite(query)
	rows, err := c.query(ctx, c.session, query, args)
	if c.hasLost(err) {
		rows, err = c.session.QueryContext(ctx, query, args)
	}
	return rows, err
}

// BeginTx implements driver.ConnBeginTx.
func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	c.inTransaction = true
	return c.session.BeginTx(ctx, opts)
}

// ResetSession implements driver.SessionResetter. The pool calls it when it gives the connection out again, after the
// end of a transaction.
func (c *conn) ResetSession(ctx context.Context) error {
	c.inTransaction = false
	return c.session.ResetSession(ctx)
}

// noteNotice gets the name of the server's function that sent a notice. Unlike the text it is not translated, and the
// warning has no code of its own.
func (l *life) noteNotice(routine string) {
	if routine == "SyncRepWaitForLSN" {
		l.unreplicated.Store(true)
	}
}

// Unreplicated reports whether the server has stopped waiting for its synchronous standby since the last call:
// package transaction asks.
func (l *life) Unreplicated() bool { return l.unreplicated.Swap(false) }

// IsValid implements driver.Validator. The pool calls it when it gets the connection back.
func (c *conn) IsValid() bool {
	if v, ok := c.session.(driver.Validator); ok && !v.IsValid() {
		return false
	}
	c.rotation.renew(c)
	return true
}
