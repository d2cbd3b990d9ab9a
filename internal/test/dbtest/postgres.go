package dbtest

import (
	"net/url"
	"strings"
	"testing"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// Postgres returns a new schema on the server of SQLLOCK_TEST_POSTGRES. The DSN sets it as the search_path of every
// connection.
func Postgres(tb testing.TB) *DB {
	tb.Helper()
	return newSchema(tb, server.Postgres)
}

// PostgresNewest is [Postgres] on the server of SQLLOCK_TEST_POSTGRES_NEWEST.
func PostgresNewest(tb testing.TB) *DB {
	tb.Helper()
	return newSchema(tb, server.PostgresNewest)
}

// PostgresBeta is [Postgres] on the server of SQLLOCK_TEST_POSTGRES_BETA.
func PostgresBeta(tb testing.TB) *DB {
	tb.Helper()
	return newSchema(tb, server.PostgresBeta)
}

// Pgpool is [Postgres] through the Pgpool-II of SQLLOCK_TEST_PGPOOL, whose pool keeps a connection for each client.
func Pgpool(tb testing.TB) *DB {
	tb.Helper()
	return newSchema(tb, server.Pgpool)
}

func newSchema(tb testing.TB, name string) *DB {
	tb.Helper()
	serverDSN := DSN(tb, name)
	schema := uniqueName(tb)
	isolate(tb, isolation{
		driver: "postgres",
		dsn:    serverDSN,
		// The user owns the schema, so it needs only the right CREATE on the database.
		create: `CREATE SCHEMA ` + schema,
		drop:   []string{`SET lock_timeout = '2min'`, `DROP SCHEMA ` + schema + ` CASCADE`},
		name:   "schema " + schema,
	})
	return newPostgres(tb, name, urlWith(tb, serverDSN, func(u *url.URL) {
		setParameters(u, map[string]string{"search_path": schema})
	}))
}

func newPostgres(tb testing.TB, name, dsn string) *DB {
	tb.Helper()
	db := &DB{Name: "postgres", Server: name, Driver: "postgres", DSN: dsn, Dialect: dialect.Postgres()}
	db.DB = open(tb, db.Driver, db.DSN)
	return db
}

// urlWith returns a changed URL.
func urlWith(tb testing.TB, dsn string, change func(*url.URL)) string {
	tb.Helper()
	u, err := url.Parse(dsn)
	if err != nil {
		tb.Fatalf("the DSN is not a URL: %v", err)
	}
	change(u)
	return u.String()
}

func setParameters(u *url.URL, parameters map[string]string) {
	query := u.Query()
	for name, value := range parameters {
		query.Set(name, value)
	}
	// A plus sign means a space for lib/pq, but a plus sign for pgx.
	u.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20")
}

// PgBouncer returns a new database on the server of SQLLOCK_TEST_POSTGRES, through the PgBouncer of
// SQLLOCK_TEST_PGBOUNCER. A new schema is not enough: the search_path belongs to a session, and with transaction
// pooling a client's next transaction may run in another session.
//
// The DSN works with lib/pq and pgx: see [server.StartPgBouncer].
func PgBouncer(tb testing.TB) *DB {
	tb.Helper()
	return newBehindPgBouncer(tb, server.PgBouncer)
}

// PgBouncerNewest is [PgBouncer] through the PgBouncer of SQLLOCK_TEST_PGBOUNCER_NEWEST.
func PgBouncerNewest(tb testing.TB) *DB {
	tb.Helper()
	return newBehindPgBouncer(tb, server.PgBouncerNewest)
}

func newBehindPgBouncer(tb testing.TB, name string) *DB {
	tb.Helper()
	bouncer := DSN(tb, name)
	database := uniqueName(tb)
	isolate(tb, isolation{
		driver: "postgres",
		dsn:    DSN(tb, server.Postgres),
		create: "CREATE DATABASE " + database,
		// Forced, because PgBouncer keeps its connections open.
		drop: []string{"DROP DATABASE " + database + " WITH (FORCE)"},
		name: "database " + database,
	})
	return newPostgres(tb, name, urlWith(tb, bouncer, func(u *url.URL) { u.Path = "/" + database }))
}
