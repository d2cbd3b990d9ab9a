package locktable

import (
	"database/sql"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/transaction"
)

// A Config says which table, and how its rows are acquired. The root package has checked it.
type Config struct {
	DB       *sql.DB // stays the caller's
	Dialect  dialect.Dialect
	Names    dialect.Names // without a Fence no tokens are drawn, without a Channel releases do not notify
	Region   string
	ClientID string         // random if ""
	ASCII    bool           // whether Region and all LOCK_KEYs are ASCII
	Layout   dialect.Layout // asked of the database if 0

	Unverified bool // whether the server may be one that sqllock does not support

	Isolation       sql.IsolationLevel // of the transaction that acquires
	Autocommit      bool               // acquire without an explicit transaction
	Acquirers       *sql.DB            // sessions with that isolation, which acquire without one; nil for none
	Turns           *sql.DB            // for the sessions that wait for turns; nil for DB itself
	OnFallback      func(error)        // is told why one of Acquirers or a turn was not used; may be nil
	MultiStatements bool               // DB takes several statements, with arguments, in one message
	DisableBatching bool
}

// A Table is the lock table of one client in one region. All methods are safe for concurrent use. Their errors are of
// type [*Error].
type Table struct {
	pool       transaction.Pool
	dialect    dialect.Dialect
	errors     classifier
	statements statements
	layout     dialect.Layout
	collation  string // of LOCK_KEY if it takes different keys for one, or ""
	names      dialect.Names
	region     string
	holders    holders
	tokens     tokens

	acquirers   *acquirers // nil for none
	level       sql.IsolationLevel
	transaction bool // whether to acquire in an explicit transaction
	// readBeforeAcquire reports whether a refused attempt would wait for a pinned row, so that each attempt reads the
	// row first.
	readBeforeAcquire bool
	// refusalsLockRows reports whether a refused attempt locks the row for several round trips.
	refusalsLockRows bool
	certification    certification
	file             file
	turns            turns
	// home is the cluster that a server must be a member of to acquire.
	home Cluster

	acquires    batched[Result]
	releases    batched[bool]
	reads       *limiter // for reads before an attempt; nil if batching is disabled
	polls       polls
	watcher     Watcher // nil for none
	attendance  attendance
	polled      *limiter      // for waiters whose poll has failed
	patience    time.Duration // see [WithPatience]; 0 without
	room        room
	leftovers   leftovers
	keepsValues atomic.Bool // see KeepValues
	inFlight    inFlight
	named       knownNames
	pinSoon     sync.Mutex // while PinSoon asks
}

// ClientID returns what all holders begin with.
func (t *Table) ClientID() string { return t.holders.client }

// Layout returns the layout of the table.
func (t *Table) Layout() dialect.Layout { return t.layout }

// RefusalsLockRows reports whether a refused attempt to acquire locks the row for several round trips, so that a
// caller who tries only once should read it first. It does on MariaDB.
func (t *Table) RefusalsLockRows() bool { return t.refusalsLockRows }

// MaxReleases returns how many calls of [Table.Release] at the same time are of use: as many as the batches take, or
// a few if batching is disabled.
func (t *Table) MaxReleases() int {
	if t.releases.batcher == nil {
		return maxLanes
	}
	return maxLanes * maxBatch
}

// KeepValues has the statement of a batch that has one claim run with the values of its caller's context, so that
// traces nest. It costs an allocation.
func (t *Table) KeepValues() { t.keepsValues.Store(true) }

// Topic returns the topic on which releases of a row notify.
func (t *Table) Topic(lockKey string) string { return t.names.Topic(t.region, lockKey) }

// LeastTTL returns the shortest time-to-live that a claim may have on the database.
func (t *Table) LeastTTL() time.Duration { return t.dialect.LeastTTL }
