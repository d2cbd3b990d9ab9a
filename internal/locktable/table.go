package locktable

import (
	"database/sql"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/clientid"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/names"
	"github.com/sqllock/sqllock/internal/poll"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/turns"
)

// What crosses the border, in both directions.
type (
	// A Claim is a row as one acquisition wants it, or several.
	Claim = stmt.Claim
	// A Row is one row of the lock table.
	Row = stmt.Row
)

// A Config says which table, and how its rows are acquired. The root package has checked it.
type Config struct {
	DB       *sql.DB // stays the caller's
	Dialect  sqltext.Dialect
	Names    sqltext.Names // without a Fence no tokens are drawn, without a Channel releases do not notify
	Region   string
	ClientID string         // random if ""
	ASCII    bool           // whether Region and all LOCK_KEYs are ASCII
	Layout   dialect.Layout // asked of the database if 0

	Unverified bool // whether the server may be one that sqllock does not support

	Isolation       sql.IsolationLevel // of the transaction that acquires
	Autocommit      bool               // acquire without an explicit transaction
	Acquirers       *sql.DB            // sessions with that isolation, which acquire without one; nil for none
	Turns           *sql.DB            // for the sessions that wait for turns; nil for DB itself
	OnFallback      func(error)        // is told why one of Acquirers, a turn or a bell was not used; may be nil
	MultiStatements bool               // DB takes several statements, with arguments, in one message
	DisableBatching bool
}

// A Table is the lock table of one client in one region: its verbs, in parts that each have what they know. All methods
// are safe for concurrent use. Their errors are of type [*dbcall.Error].
type Table struct {
	*database

	Acquisitions *acquisitions // Acquire
	Releases     *releases     // Release and Keep
	Leftovers    *leftovers    // CleanUp, and what is to be deleted later
	Renewals     *renewals     // Renew and RenewAll
	Guards       *guards       // Guard
	Reads        *reads        // Read and List
	Pins         *pins         // Pin
	Deletions    *deletions    // DeleteExpired and DeleteRow
	Poller       *poll.Poller  // Poll
	Turns        *turns.Queue  // Take and Check
	Names        *names.Table
	IDs          clientid.Maker // Next makes the holder of one acquisition, which no other acquisition has

	layout      dialect.Layout
	tableNames  sqltext.Names
	keepsValues atomic.Bool // see KeepValues
}

// ClientID returns what all holders begin with.
func (t *Table) ClientID() string { return t.IDs.Client() }

// IsOwn reports whether a CLIENT_ID is of this client. That of "web-7" is not of "web", although it begins with
// "web-".
func (t *Table) IsOwn(holder string) bool { return clientid.Of(holder) == t.IDs.Client() }

// Layout returns the layout of the table.
func (t *Table) Layout() dialect.Layout { return t.layout }

// MigrateUp is the command that creates what is missing of the tables.
func (t *Table) MigrateUp() string { return dbcall.MigrateUp(t.server.Prefix) }

// KeepValues makes the statement of a batch that has one claim run with the values of its caller's context, so that
// traces nest. It costs an allocation.
func (t *Table) KeepValues() { t.keepsValues.Store(true) }

// Topic returns the topic on which releases of a row notify.
func (t *Table) Topic(lockKey string) string { return t.tableNames.Topic(t.region, lockKey) }

// LeastTTL returns the shortest time-to-live that a claim may have on the database.
func (t *Table) LeastTTL() time.Duration { return t.dialect.LeastTTL }
