package dbtest

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

// A DB is an empty database for one test.
type DB struct {
	// Name is "sqlite", "postgres" or "mysql".
	Name string
	// Server is the name of the server's kind, one of [server.Kinds].
	Server string
	// Driver and DSN open further pools on this database. Driver is the driver of DB
	// ("sqlite", "postgres" of lib/pq, "mysql"). The DSN of PostgreSQL is a URL, which
	// pgx accepts too.
	Driver, DSN string
	// Path is SQLite's file.
	Path string
	// DB is a pool without limits. It is closed when the test ends.
	DB *sqlx.DB
	// Dialect is sqllock's dialect for the database.
	Dialect dialect.Dialect
}

// Open returns another pool on the same database, as another process has. It is closed when
// tb ends, which may be a subtest of the database's test.
func (db *DB) Open(tb testing.TB) *sqlx.DB {
	tb.Helper()
	return open(tb, db.Driver, db.DSN)
}

// OpenDSN is [DB.Open] with another driver, another DSN, or both. The DSN must lead to the
// same database, as those of [DB.With] do. "pgx" accepts the DSNs of PostgreSQL.
func (db *DB) OpenDSN(tb testing.TB, driver, dsn string) *sqlx.DB {
	tb.Helper()
	return open(tb, driver, dsn)
}

// Each runs a test on each kind of database, in parallel subtests named sqlite, postgres and
// mysql. As parallel subtests do, they run after the calling test function has returned.
func Each(t *testing.T, test func(t *testing.T, db *DB)) {
	t.Helper()
	for _, kind := range kinds {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			test(t, kind.make(t))
		})
	}
}

var kinds = []struct {
	name string
	make func(testing.TB) *DB
}{
	{"sqlite", SQLite},
	{"postgres", Postgres},
	{"mysql", MySQL},
}
