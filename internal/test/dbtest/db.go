package dbtest

import (
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

// A DB is an empty database that belongs to one test.
type DB struct {
	// Name is "sqlite", "postgres" or "mysql".
	Name string
	// Server is the name of the server's kind, one of [server.Kinds].
	Server string
	// Driver and DSN lead any number of pools to this same database. Driver is
	// the one that DB uses ("sqlite", "postgres" of lib/pq, "mysql"); the DSN of
	// PostgreSQL is a URL, which pgx understands as well.
	Driver, DSN string
	// DB is a pool without limits. It is closed when the test ends.
	DB *sqlx.DB
	// Dialect is sqllock's dialect for the database.
	Dialect dialect.Dialect
}

// Open returns another pool on the same database, such as another process
// would have. It is closed when the test tb ends, which may be a part of the
// test that the database belongs to.
func (db *DB) Open(tb testing.TB) *sqlx.DB {
	tb.Helper()
	return open(tb, db.Driver, db.DSN)
}

// OpenDSN is [DB.Open] with another driver, another DSN, or both. The DSN is to
// lead to the same database, as those of [DB.With] do; "pgx" understands that of
// PostgreSQL.
func (db *DB) OpenDSN(tb testing.TB, driver, dsn string) *sqlx.DB {
	tb.Helper()
	return open(tb, driver, dsn)
}

// Each runs a test once for every kind of database, in parallel subtests
// called sqlite, postgres and mysql. They run when the calling test function
// has returned, as parallel subtests do.
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
