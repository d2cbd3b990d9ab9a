// Package fakedb is a database/sql driver that answers at once: each query with
// one row of one number, each statement with one row affected. It allocates
// nothing for that, so what a benchmark over it counts is not the driver's.
package fakedb

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"io"
)

// Open returns a pool over the driver.
func Open() *sql.DB { return sql.OpenDB(connector{}) }

type connector struct{}

func (connector) Connect(context.Context) (driver.Conn, error) { return &conn{}, nil }

func (connector) Driver() driver.Driver { return fake{} }

type fake struct{}

func (fake) Open(string) (driver.Conn, error) { return &conn{}, nil }

// A conn is its own transaction, and its own result.
type conn struct{ read bool }

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }

func (c *conn) Close() error { return nil }

func (c *conn) Begin() (driver.Tx, error) { return c, nil }

func (c *conn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }

func (c *conn) Commit() error { return nil }

func (c *conn) Rollback() error { return nil }

var one driver.Result = driver.RowsAffected(1)

func (c *conn) ExecContext(context.Context, string, []driver.NamedValue) (driver.Result, error) {
	return one, nil
}

func (c *conn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	c.read = false
	return (*rows)(c), nil
}

type rows conn

var columns = []string{"n"}

func (*rows) Columns() []string { return columns }

func (*rows) Close() error { return nil }

// number is one that needs no memory of its own as an interface.
var number driver.Value = int64(1)

func (r *rows) Next(to []driver.Value) error {
	if r.read {
		return io.EOF
	}
	r.read = true
	to[0] = number
	return nil
}
