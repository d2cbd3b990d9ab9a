package dbtest_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/test/dbtest"
)

func exec(t *testing.T, db *sqlx.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func TestEachProvidesAnEmptyDatabase(t *testing.T) {
	for range 2 { // the second one must not see the first one's table
		dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
			if name := t.Name(); !strings.Contains(name, "/"+db.Name) {
				t.Errorf("the subtest for %s is called %s", db.Name, name)
			}
			if db.Dialect.Name != db.Name {
				t.Errorf("the dialect for %s is %s", db.Name, db.Dialect.Name)
			}
			exec(t, db.DB, "CREATE TABLE t (id INT PRIMARY KEY)")
			exec(t, db.DB, "INSERT INTO t VALUES (1)")
		})
	}
}

func TestOpenUsesTheSameDatabase(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		exec(t, db.DB, "CREATE TABLE t (id INT PRIMARY KEY)")
		other := db.Open(t)
		if other == db.DB {
			t.Error("Open returned the same pool")
		}
		exec(t, other, "INSERT INTO t VALUES (1)")
		var n int
		if err := db.DB.GetContext(t.Context(), &n, "SELECT COUNT(*) FROM t"); err != nil || n != 1 {
			t.Errorf("%d rows, error %v; not 1, nil", n, err)
		}
	})
}

func TestAllConnectionsUseTheSameDatabase(t *testing.T) {
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		exec(t, db.DB, "CREATE TABLE t (id INT PRIMARY KEY)")
		var all sync.WaitGroup
		for range 10 {
			conn, err := db.DB.Connx(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			all.Go(func() {
				var n int
				if err := conn.GetContext(t.Context(), &n, "SELECT COUNT(*) FROM t"); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
	})
}

func TestDatabaseIsDroppedAfterTheTest(t *testing.T) {
	t.Parallel()
	for _, kind := range []struct {
		name  string
		make  func(testing.TB) *dbtest.DB
		own   string
		exist string
	}{
		{"postgres", dbtest.Postgres, "SELECT current_schema()", "SELECT COUNT(*) FROM pg_namespace WHERE nspname = $1"},
		{"pgbouncer", dbtest.PgBouncer, "SELECT current_database()", "SELECT COUNT(*) FROM pg_database WHERE datname = $1"},
		{"mysql", dbtest.MySQL, "SELECT DATABASE()", "SELECT COUNT(*) FROM information_schema.schemata WHERE schema_name = ?"},
	} {
		t.Run(kind.name, func(t *testing.T) {
			t.Parallel()
			observer := kind.make(t)
			var name string
			t.Run("part", func(t *testing.T) {
				db := kind.make(t)
				if err := db.DB.GetContext(t.Context(), &name, kind.own); err != nil {
					t.Fatal(err)
				}
				exec(t, db.DB, "CREATE TABLE t (id INT PRIMARY KEY)")
			})
			var n int
			if err := observer.DB.GetContext(t.Context(), &n, kind.exist, name); err != nil || n != 0 {
				t.Errorf("%s exists %d times, error %v", name, n, err)
			}
		})
	}
}

func TestSQLiteSettings(t *testing.T) {
	db := dbtest.SQLite(t)
	var mode string
	if err := db.DB.GetContext(t.Context(), &mode, "PRAGMA journal_mode"); err != nil || mode != "wal" {
		t.Errorf("journal mode %q, error %v", mode, err)
	}
	var timeout int
	if err := db.DB.GetContext(t.Context(), &timeout, "PRAGMA busy_timeout"); err != nil || timeout != 10000 {
		t.Errorf("busy timeout %d, error %v", timeout, err)
	}
}
