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
func Open() *sql.DB { return OpenWith(nil) }

// OpenWith is Open with a function that is called within each query and each statement, unless it is nil.
func OpenWith(sent func(text string)) *sql.DB { return sql.OpenDB(connector{sent}) }

type connector struct{ sent func(text string) }

func (c connector) Connect(context.Context) (driver.Conn, error) { return &conn{sent: c.sent}, nil }

func (connector) Driver() driver.Driver { return fake{} }

type fake struct{}

func (fake) Open(string) (driver.Conn, error) { return &conn{}, nil }

// A conn is its own transaction, and its own result.
type conn struct {
	read bool
	sent func(text string)
}

func (c *conn) Prepare(string) (driver.Stmt, error) { return nil, driver.ErrSkip }

func (c *conn) Close() error { return nil }

func (c *conn) Begin() (driver.Tx, error) { return c, nil }

func (c *conn) BeginTx(context.Context, driver.TxOptions) (driver.Tx, error) { return c, nil }

func (c *conn) Commit() error { return nil }

func (c *conn) Rollback() error { return nil }

var one driver.Result = driver.RowsAffected(1)

func (c *conn) ExecContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Result, error) {
	if c.sent != nil {
		c.sent(text)
	}
	return one, nil
}

func (c *conn) QueryContext(_ context.Context, text string, _ []driver.NamedValue) (driver.Rows, error) {
	if c.sent != nil {
		c.sent(text)
	}
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
