package flaky

import (
	"context"
	"database/sql/driver"
	"errors"
)

type conn struct {
	driver.Conn
	connector *Connector
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	inner, err := do(ctx, c.connector, Begin, func() (driver.Tx, error) {
		return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	})
	if inner == nil {
		return nil, err
	}
	if err != nil {
		// The server has begun what the client knows nothing of. A connection
		// that lost an answer is closed, which ends the transaction.
		return nil, errors.Join(err, inner.Rollback())
	}
	return &tx{inner, ctx, c.connector}, nil
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return do(ctx, c.connector, Exec, func() (driver.Result, error) {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	})
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := do(ctx, c.connector, Query, func() (driver.Rows, error) {
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	})
	if rows != nil && err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return rows, err
}

type tx struct {
	driver.Tx
	ctx       context.Context //nolint:containedctx // of the transaction, which is what ctx is for
	connector *Connector
}

func (t *tx) Commit() error {
	_, err := do(t.ctx, t.connector, Commit, func() (struct{}, error) { return struct{}{}, t.Tx.Commit() })
	return err
}

func (t *tx) Rollback() error {
	_, err := do(t.ctx, t.connector, Rollback, func() (struct{}, error) { return struct{}{}, t.Tx.Rollback() })
	return err
}
