package session

import (
	"context"
	"database/sql/driver"
	"errors"
)

// A fileSession has what database/sql asks of a connection to a file.
type fileSession interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

// Preparing returns a connector to a file whose connections prepare what is sent often, which a driver would parse each time. They
// do so in a transaction, too: SQLite prepares a statement anew by itself when a table has changed, so nothing is sent again.
func Preparing(c driver.Connector) driver.Connector { return preparing{c} }

type preparing struct{ driver.Connector }

// Connect implements driver.Connector.
func (p preparing) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := p.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	s, ok := inner.(fileSession)
	if !ok {
		return inner, nil
	}
	return &fileConn{fileSession: s, preparer: preparer{prepares: func() bool { return true }, inside: true}}, nil
}

// A fileConn is a connection to a file. It is used by one goroutine at a time.
type fileConn struct {
	fileSession
	preparer
}

// ExecContext implements driver.ExecerContext.
func (c *fileConn) ExecContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Result, error) {
	return c.exec(ctx, c.fileSession, query, args)
}

// QueryContext implements driver.QueryerContext.
func (c *fileConn) QueryContext(ctx context.Context, query string, args []driver.NamedValue) (driver.Rows, error) {
	return c.query(ctx, c.fileSession, query, args)
}

// Close closes the statements first: SQLite keeps the file open for as long as there are some.
func (c *fileConn) Close() error {
	var errs []error
	for _, s := range c.statements {
		if s != nil {
			errs = append(errs, s.Close())
		}
	}
	c.statements = nil
	return errors.Join(append(errs, c.fileSession.Close())...)
}
