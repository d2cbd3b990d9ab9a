package session

import (
	"context"
	"database/sql/driver"

	"github.com/sqllock/sqllock/dialect"
)

// DiscardReadOnly returns a connector whose connections leave the pool after the server has refused a
// write as read-only: the name or the proxy in the DSN may lead elsewhere by now. The error stays what it
// is. (rejectReadOnly of go-sql-driver returns driver.ErrBadConn instead, which does not say why.)
//
// Statements that are kept prepared are not watched.
func DiscardReadOnly(c driver.Connector, classify func(error) dialect.Class) driver.Connector {
	return discarding{c, classify}
}

type discarding struct {
	driver.Connector

	classify func(error) dialect.Class
}

// Connect implements driver.Connector.
func (d discarding) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := d.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	if c, ok := inner.(session); ok {
		return &discardable{session: c, classify: d.classify}, nil
	}
	return inner, nil
}

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
	driver.Validator
}

// A discardable connection is used by one goroutine at a time.
type discardable struct {
	session

	classify func(error) dialect.Class
	readOnly bool
}

// ExecContext implements driver.ExecerContext.
func (c *discardable) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	result, err := c.session.ExecContext(ctx, query, args)
	c.note(err)
	return result, err
}

// QueryContext implements driver.QueryerContext.
func (c *discardable) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	rows, err := c.session.QueryContext(ctx, query, args)
	c.note(err)
	return rows, err
}

func (c *discardable) note(err error) {
	c.readOnly = c.readOnly || err != nil && c.classify(err) == dialect.ReadOnly
}

// IsValid implements driver.Validator.
func (c *discardable) IsValid() bool { return !c.readOnly && c.session.IsValid() }
