package dbtest

import (
	"net/url"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// PgBouncer returns a new database on the server of SQLLOCK_TEST_POSTGRES,
// reached through the PgBouncer of SQLLOCK_TEST_PGBOUNCER in front of it. A
// schema of the test's own would not do: its search_path belongs to a session,
// and in transaction pooling a client's next transaction may be in another.
//
// The DSN suits lib/pq and pgx, because of what [server.StartPgBouncer] puts
// into it.
func PgBouncer(tb testing.TB) *DB {
	tb.Helper()
	bouncer := variable(tb, server.PgBouncer)
	database := uniqueName(tb)
	isolate(tb, isolation{
		driver: "postgres",
		dsn:    variable(tb, server.Postgres),
		create: "CREATE DATABASE " + database,
		// Forced, because PgBouncer keeps its connections for others to use.
		drop: []string{"DROP DATABASE " + database + " WITH (FORCE)"},
		name: "database " + database,
	})
	return newPostgres(tb, server.PgBouncer, urlWith(tb, bouncer, func(u *url.URL) { u.Path = "/" + database }))
}
