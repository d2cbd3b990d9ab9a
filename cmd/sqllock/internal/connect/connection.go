package connect

import (
	"database/sql"
	"fmt"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/session"
)

// A Connection is an open database.
type Connection struct {
	DB      *sqlx.DB
	Dialect dialect.Dialect
	Target  session.Target
	Name    string // the DSN without passwords, for messages
	Default bool   // it is the default SQLite file

	pools *session.Pools
}

// Close closes the database.
func (c *Connection) Close() error {
	if err := c.pools.Close(); err != nil {
		return fmt.Errorf("%w: close %s: %w", sqllock.ErrDatabase, c.Name, err)
	}
	return nil
}

// Pooler says why the settings of a session are not relied on, or is nil.
func (c *Connection) Pooler() error { return c.pools.Pooler }

// SQL returns the pool as package migrations needs it.
func (c *Connection) SQL() *sql.DB { return c.DB.DB }

// Presence says what to do about an SQLite file that does not exist. The default file
// is always created.
type Presence bool

// The values of Presence.
const (
	MustExist Presence = false // return an error
	MayCreate Presence = true  // create it
)
