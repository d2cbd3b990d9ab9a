package dbtest

import (
	"context"
	"strings"
	"testing"
	"time"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbcall"
)

// A DB is an empty database for one test.
type DB struct {
	// Name is "sqlite", "postgres" or "mysql".
	Name string
	// Server is the name of the server's kind, one of [server.Kinds].
	Server string
	// Driver and DSN open further pools on this database. Driver is the driver of DB ("sqlite", "postgres" of lib/pq,
	// "mysql"). The DSN of PostgreSQL is a URL, which pgx accepts too.
	Driver, DSN string
	// Path is SQLite's file.
	Path string
	// DB is a pool without limits. It is closed when the test ends.
	DB *sqlx.DB
	// Dialect is sqllock's dialect for the database.
	Dialect dialect.Dialect
}

// Open returns another pool on the same database, as another process has. It is closed when tb ends, which may be a
// subtest of the database's test.
func (db *DB) Open(tb testing.TB) *sqlx.DB {
	tb.Helper()
	return open(tb, db.Driver, db.DSN)
}

// OpenDSN is [DB.Open] with another driver, another DSN, or both. The DSN must lead to the same database, as those of
// [DB.With] do. "pgx" accepts the DSNs of PostgreSQL.
func (db *DB) OpenDSN(tb testing.TB, driver, dsn string) *sqlx.DB {
	tb.Helper()
	return open(tb, driver, dsn)
}

// Each runs a test on each kind of database, in parallel subtests named sqlite, postgres and mysql. As parallel
// subtests do, they run after the calling test function has returned.
func Each(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	Databases{"sqlite": SQLite, "postgres": Postgres, "mysql": MySQL}.Each(t, test)
}

// Databases are functions that make a test a database of its own, by the names of their servers.
type Databases map[string]func(testing.TB) *DB

// Each is the function Each with these databases.
func (all Databases) Each(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	for name, open := range all {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, open(t))
		})
	}
}

// open returns a pool that has answered a ping. It is closed when the test ends, before all cleanups that were
// registered earlier.
func open(tb testing.TB, driver, dsn string) *sqlx.DB {
	tb.Helper()
	db, err := sqlx.ConnectContext(tb.Context(), driver, dsn)
	if err != nil {
		tb.Fatalf("open %s %s: %v", driver, dsn, err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Errorf("close %s: %v", driver, err)
		}
	})
	return db
}

// Version returns the version that the server reports: "15.18", "10.11.19-MariaDB-0+deb12u1".
func (db *DB) Version(tb testing.TB) string {
	tb.Helper()
	query, ok := map[string]string{
		"sqlite":   "SELECT sqlite_version()",
		"postgres": "SELECT current_setting('server_version')",
		"mysql":    "SELECT VERSION()",
	}[db.Name]
	if !ok {
		tb.Fatalf("no way to ask %s for its version", db.Name)
	}
	var version string
	if err := db.DB.GetContext(tb.Context(), &version, query); err != nil {
		tb.Fatalf("version of %s: %v", db.Server, err)
	}
	version, _, _ = strings.Cut(version, " ") // Debian's PostgreSQL appends more
	return version
}

// Shorten makes all leases in a table of locks end sooner by the given number of seconds. The table has the five
// columns. A test that waits for the end of a lease thereby need not choose a time-to-live that is long enough for
// the machine and short enough for the test.
func (db *DB) Shorten(tb testing.TB, table string, seconds int) {
	tb.Helper()
	sooner := map[string]string{
		"sqlite":   "datetime(EXPIRED_AFTER, 'subsec', '-' || CAST(? AS INTEGER) || ' seconds')",
		"postgres": "EXPIRED_AFTER - $1 * INTERVAL '1 second'",
		"mysql":    "EXPIRED_AFTER - INTERVAL ? SECOND",
	}[db.Name]
	if _, err := db.DB.ExecContext(tb.Context(), "UPDATE "+table+" SET EXPIRED_AFTER = "+sooner, seconds); err != nil {
		tb.Fatalf("shorten the leases in %s: %v", table, err)
	}
}

// Unhurried returns a context with which a repository waits for a minute at least for each answer: how fast the
// machine is must not decide what a test finds.
func Unhurried(ctx context.Context) context.Context {
	return dbcall.WithTestPatience(ctx, time.Minute)
}
