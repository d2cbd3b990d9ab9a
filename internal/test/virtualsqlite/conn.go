package virtualsqlite

import (
	"context"
	"database/sql/driver"
	"errors"
)

// sqliteConn is what a connection of modernc.org/sqlite implements.
type sqliteConn interface {
	driver.Conn
	driver.Pinger
	driver.SessionResetter
	driver.Validator
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.QueryerContext
}

type conn struct {
	sqliteConn
	patient    bool // it waits for other writers
	statements statements
}

func (c *conn) Close() error {
	return errors.Join(c.statements.close(), c.sqliteConn.Close())
}

func (c *conn) BeginTx(ctx context.Context, opts driver.TxOptions) (driver.Tx, error) {
	return awaited(ctx, c.patient, func() (driver.Tx, error) { return c.sqliteConn.BeginTx(ctx, opts) })
}

func (c *conn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return awaited(ctx, c.patient, func() (driver.Result, error) { return c.statements.exec(ctx, c.sqliteConn, onGosClock(query), args) })
}

func (c *conn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return awaited(ctx, c.patient, func() (driver.Rows, error) { return c.statements.query(ctx, c.sqliteConn, onGosClock(query), args) })
}

func (c *conn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	inner, err := awaited(ctx, c.patient, func() (driver.Stmt, error) { return c.sqliteConn.PrepareContext(ctx, onGosClock(query)) })
	if err != nil {
		return nil, err
	}
	return &stmt{inner.(sqliteStmt), c.patient}, nil
}

// sqliteStmt is what a prepared statement of modernc.org/sqlite implements.
type sqliteStmt interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type stmt struct {
	sqliteStmt
	patient bool
}

func (s *stmt) ExecContext(ctx context.Context, args []driver.NamedValue) (driver.Result, error) {
	return awaited(ctx, s.patient, func() (driver.Result, error) { return s.sqliteStmt.ExecContext(ctx, args) })
}

func (s *stmt) QueryContext(ctx context.Context, args []driver.NamedValue) (driver.Rows, error) {
	return awaited(ctx, s.patient, func() (driver.Rows, error) { return s.sqliteStmt.QueryContext(ctx, args) })
}
