package migrations

import (
	"database/sql"
	"database/sql/driver"
)

// discard closes a connection instead of giving it back to its pool. The server
// then ends the session, with its locks, its transaction and its settings.
func discard(conn *sql.Conn) {
	// The error is the one that makes package sql do it.
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}
