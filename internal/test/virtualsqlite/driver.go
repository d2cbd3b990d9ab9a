package virtualsqlite

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"modernc.org/sqlite"
)

// Name is the name under which the driver is registered.
const Name = "sqlite-virtual"

func init() {
	actual.MustRegisterScalarFunction(now, 0, goTime)
	sql.Register(Name, Driver{})
}

// actual is the driver underneath. It is one of its own, so that no other connection of the
// program knows the function.
var actual sqlite.Driver

// Driver opens connections to SQLite in virtual time. Its DSNs are those of the driver
// "sqlite"; a busy_timeout is replaced by its own wait.
type Driver struct{}

// Open implements driver.Driver.
func (Driver) Open(dsn string) (driver.Conn, error) { return open(dsn, true) }

// OpenImpatient is Open without the wait for other writers: SQLITE_BUSY comes at once. The
// connection implements what a connection of modernc.org/sqlite does.
func OpenImpatient(dsn string) (driver.Conn, error) { return open(dsn, false) }

func open(dsn string, patient bool) (driver.Conn, error) {
	inner, err := awaited(context.Background(), true, func() (driver.Conn, error) { return actual.Open(dsn) })
	if err != nil {
		return nil, err
	}
	c := &conn{inner.(sqliteConn), patient, make(statements)}
	if _, err := c.sqliteConn.ExecContext(context.Background(), "PRAGMA busy_timeout = 0", nil); err != nil {
		return nil, errors.Join(err, inner.Close())
	}
	return c, nil
}
