package session

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"io/fs"
	"os"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/poll"
)

// A Target is the database that a DSN names, and how to reach it.
type Target struct {
	Dialect  dialect.Dialect
	Redacted string // the DSN without passwords and parameters

	Choice

	Driver, Source string // as for sql.Open; Source is "" if a configuration was given in place of a DSN
	Creating       string // SQLite: the source that creates a missing file
	File           string // SQLite: the path, where it is known
	Address        string // host and port of a server, where it is a single one that is reached by TCP alone

	// HasIsolation reports whether a parameter of the DSN sets the isolation of a session.
	HasIsolation bool
	// SerializablePool reports whether the sessions of one pool can all be SERIALIZABLE: what else they do is not
	// hindered by that.
	SerializablePool bool
	// MultiStatements, unless it is nil, reports whether the sessions take several statements in a message, which a
	// proxy may refuse. It returns ErrCharset if a parameter of the DSN makes that unsafe.
	MultiStatements func(context.Context, *sql.DB) (bool, error)

	// Idle is how long a connection stays open without being used, if the server closes those that are idle for
	// longer, or 0.
	Idle time.Duration

	// Prepares reports whether the connections have to prepare what is sent often, because the driver does not.
	Prepares bool
	// IsLost, unless it is nil, reports whether a statement was not executed because the server does not know what
	// was prepared, or does not prepare it.
	IsLost func(error) bool

	// OnNotice, unless it is nil, has note called for each notice of the server on a connection.
	OnNotice func(c driver.Conn, note func(routine string))

	// Plain, unless it is nil, makes connections without any settings, as sql.Open of Driver and Source does.
	Plain driver.Connector
	// SetsTimeout reports whether the configuration, or the DSN, sets the limit by which it is known whether a server of
	// PostgreSQL keeps settings.
	SetsTimeout bool
	// Connector returns what makes the connections of a pool, for Source or Creating.
	Connector func(source string, s Settings) (driver.Connector, error)
	// Bell, unless it is nil, returns what has releases wake waiters. It owns the pool sessions, whose statements sleep.
	Bell func(sessions, pool *sql.DB) Bell
	// Watcher, unless it is nil, returns what reports writes to the database of Source.
	Watcher func(source string) Watcher

	notMariaDB bool // as in Settings
}

// A Watcher reports writes until it is closed.
type Watcher interface {
	poll.Watcher
	Close() error
}

// A Bell has releases wake waiters until it is closed.
type Bell interface {
	locktable.Bell
	Close() error
}

// A Choice is what else a driver of PostgreSQL reads from a DSN. The command warns about it.
type Choice struct {
	Hosts  int  // how many hosts there are to choose from
	Any    bool // target_session_attrs does not say which one
	Pooled bool // a pool that is opened with the DSN alone goes on behind a pooler of transactions
}

// Settings say what the sessions of a pool are like.
type Settings struct {
	// Serializable makes the sessions SERIALIZABLE, if the target HasIsolation or has a SerializablePool.
	Serializable bool
	// Patience, unless it is 0, is how long an answer may take before a connection counts as dead, where the driver
	// does not stop waiting when its context ends.
	Patience time.Duration
	// If BriefWaits is true, a statement waits for a locked table for a second at most, where the server has a limit for
	// that alone: it may outlive its caller.
	BriefWaits bool
	// If Unlimited is true, neither the server nor the driver limits a statement, so that it may sleep.
	Unlimited bool
	// Pooled is for a pooler that gives each transaction another session: nothing is set and nothing is prepared.
	Pooled bool

	// NotMariaDB leaves out of each statement what only MariaDB is to read: Dolt executes the comments for MariaDB and
	// those for MySQL.
	NotMariaDB bool

	// kept, unless it is nil, reports whether the server has been found to keep what belongs to a session.
	kept *atomic.Bool
}

// Missing reports whether the target is a file that does not exist.
func (t Target) Missing() bool {
	_, err := os.Stat(t.File)
	return t.File != "" && errors.Is(err, fs.ErrNotExist)
}
