package dbtest

import (
	"net/url"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// PgBouncer returns a new database on the server of SQLLOCK_TEST_POSTGRES, through the
// PgBouncer of SQLLOCK_TEST_PGBOUNCER. A new schema is not enough: the search_path belongs to
// a session, and with transaction pooling a client's next transaction may run in another
// session.
//
// The DSN works with lib/pq and pgx: see [server.StartPgBouncer].
func PgBouncer(tb testing.TB) *DB {
	tb.Helper()
	bouncer := variable(tb, server.PgBouncer)
	database := uniqueName(tb)
	isolate(tb, isolation{
		driver: "postgres",
		dsn:    variable(tb, server.Postgres),
		create: "CREATE DATABASE " + database,
		// Forced, because PgBouncer keeps its connections open.
		drop: []string{"DROP DATABASE " + database + " WITH (FORCE)"},
		name: "database " + database,
	})
	return newPostgres(tb, server.PgBouncer, urlWith(tb, bouncer, func(u *url.URL) { u.Path = "/" + database }))
}
