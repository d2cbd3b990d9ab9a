package dbtest

import (
	"net/url"
	"testing"

	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/dbtest/server"
)

// Postgres returns a new schema on the server of SQLLOCK_TEST_POSTGRES. The
// DSN makes it the search_path of every connection.
func Postgres(tb testing.TB) *DB {
	tb.Helper()
	serverDSN := variable(tb, server.PostgresVariable)
	schema := uniqueName(tb)
	isolate(tb, isolation{
		driver: "postgres",
		dsn:    serverDSN,
		// The schema belongs to the user, so no right on the database itself
		// but CREATE is wanted.
		create: `CREATE SCHEMA ` + schema,
		drop:   []string{`SET lock_timeout = '10s'`, `DROP SCHEMA ` + schema + ` CASCADE`},
		name:   "schema " + schema,
	})
	dsn, err := withSearchPath(serverDSN, schema)
	if err != nil {
		tb.Fatalf("%s: %v", server.PostgresVariable, err)
	}
	db := &DB{Name: "postgres", Driver: "postgres", DSN: dsn, Dialect: dialect.Postgres()}
	db.DB = open(tb, db.Driver, db.DSN)
	return db
}

func withSearchPath(dsn, schema string) (string, error) {
	u, err := url.Parse(dsn)
	if err != nil {
		return "", err
	}
	query := u.Query()
	query.Set("search_path", schema)
	u.RawQuery = query.Encode()
	return u.String(), nil
}
