package flaky

import (
	"context"
	"database/sql/driver"
	"errors"
)

// A conn is broken after an operation on it has failed as planned. database/sql then closes
// it, and the database rolls back its transaction.
type conn struct {
	driver.Conn
	connector *Connector
	broken    bool
}

// IsValid implements driver.Validator.
func (c *conn) IsValid() bool { return !c.broken }

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	inner, err := do(ctx, c, Begin, func(ctx context.Context) (driver.Tx, error) {
		return c.Conn.(driver.ConnBeginTx).BeginTx(ctx, opts)
	})
	if err != nil {
		return nil, err
	}
	return &tx{inner, ctx, c}, nil
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return do(ctx, c, Exec, func(ctx context.Context) (driver.Result, error) {
		return c.Conn.(driver.ExecerContext).ExecContext(ctx, query, args)
	})
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(ctx, func(ctx context.Context) (driver.Rows, error) {
		return c.Conn.(driver.QueryerContext).QueryContext(ctx, query, args)
	})
}

// query runs a query under the plan, and closes the rows if the plan lets it fail.
func (c *conn) query(ctx context.Context, run func(context.Context) (driver.Rows, error)) (driver.Rows, error) {
	rows, err := do(ctx, c, Query, run)
	if rows != nil && err != nil {
		return nil, errors.Join(err, rows.Close())
	}
	return rows, err
}

type tx struct {
	driver.Tx
	ctx  context.Context //nolint:containedctx // the context of the transaction
	conn *conn
}

func (t *tx) Commit() error {
	return t.end(Commit, t.Tx.Commit)
}

func (t *tx) Rollback() error {
	return t.end(Rollback, t.Tx.Rollback)
}

func (t *tx) end(op Op, run func() error) error {
	_, err := do(t.ctx, t.conn, op, func(context.Context) (struct{}, error) { return struct{}{}, run() })
	return err
}
