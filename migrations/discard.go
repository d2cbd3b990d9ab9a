package migrations

import (
	"database/sql"
	"database/sql/driver"
)

// discard closes a connection instead of returning it to its pool. The server then ends
// the session, with its locks, its transaction and its settings.
func discard(conn *sql.Conn) {
	// database/sql closes a connection for which Raw returns ErrBadConn.
	_ = conn.Raw(func(any) error { return driver.ErrBadConn })
}
