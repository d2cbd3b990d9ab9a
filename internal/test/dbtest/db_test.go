package dbtest_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

func exec(t *testing.T, db *sqlx.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func get(t *testing.T, db *sqlx.DB, query string, arguments ...any) (value string) {
	t.Helper()
	if err := db.GetContext(t.Context(), &value, query, arguments...); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return value
}

// kinds are all databases that tests get: the dialect, how a database is named, and how it is found.
var kinds = map[string]struct {
	make                func(testing.TB) *dbtest.DB
	dialect, own, exist string
}{
	"sqlite":          {dbtest.SQLite, "sqlite", "", ""},
	"postgres":        {dbtest.Postgres, "postgres", "SELECT current_schema()", "SELECT COUNT(*) FROM pg_namespace WHERE nspname = $1"},
	"postgres-newest": {dbtest.PostgresNewest, "postgres", "SELECT current_schema()", "SELECT COUNT(*) FROM pg_namespace WHERE nspname = $1"},
	"pgbouncer":       {dbtest.PgBouncer, "postgres", "SELECT current_database()", "SELECT COUNT(*) FROM pg_database WHERE datname = $1"},
	"mysql":           {dbtest.MySQL, "mysql", "SELECT DATABASE()", "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?"},
	"oracle-mysql":    {dbtest.OracleMySQL, "mysql", "SELECT DATABASE()", "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?"},
}

// TestDatabases: a test's database is empty, its own on every connection of every pool, and gone after the
// test.
func TestDatabases(t *testing.T) {
	t.Parallel()
	for server, kind := range kinds {
		t.Run(server, func(t *testing.T) {
			t.Parallel()
			observer := kind.make(t)
			exec(t, observer.DB, "CREATE TABLE t (id INT)") // not that of the other
			var name string
			t.Run("another", func(t *testing.T) {
				db := kind.make(t)
				if db.Server != server || db.Name != kind.dialect || db.Dialect.Name != kind.dialect {
					t.Errorf("server %s, name %s, dialect %s", db.Server, db.Name, db.Dialect.Name)
				}
				if v := db.Version(t); v == "" || strings.ContainsAny(v, " ()") {
					t.Errorf("version %q", v)
				}
				exec(t, db.DB, "CREATE TABLE t (id INT PRIMARY KEY)")
				insertFromMany(t, db, db.Open(t))
				if db.Name == "postgres" {
					insertFromMany(t, db, db.OpenDSN(t, "pgx", db.DSN))
				}
				if kind.own != "" {
					name = get(t, db.DB, kind.own)
				}
			})
			if kind.exist != "" && get(t, observer.DB, kind.exist, name) != "0" {
				t.Errorf("%s is there after its test", name)
			}
		})
	}
}

// insertFromMany runs statements with arguments on several connections concurrently, and empties the table.
func insertFromMany(t *testing.T, db *dbtest.DB, pool *sqlx.DB) {
	t.Helper()
	insert := pool.Rebind("INSERT INTO t (id) VALUES (?)")
	var all sync.WaitGroup
	for id := range 10 {
		all.Go(func() {
			if _, err := pool.ExecContext(t.Context(), insert, id); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := get(t, db.DB, "SELECT COUNT(*) FROM t"); n != "10" {
		t.Errorf("%s rows, not 10", n)
	}
	exec(t, db.DB, "DELETE FROM t")
}

// TestPgBouncerPoolsTransactions: a session's advisory lock belongs to the shared connection, and
// excludes no other client.
func TestPgBouncerPoolsTransactions(t *testing.T) {
	db := dbtest.PgBouncer(t)
	for range 2 {
		if locked := get(t, db.Open(t), "SELECT pg_try_advisory_lock(1)"); locked != "true" {
			t.Errorf("locked is %s: not one connection for both", locked)
		}
	}
}
