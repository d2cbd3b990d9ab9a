package dbtest_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// beyondEach are the servers that [dbtest.Each] does not use.
var beyondEach = map[string]struct {
	make    func(testing.TB) *dbtest.DB
	name    string
	drivers []string
}{
	server.PgBouncer:      {dbtest.PgBouncer, "postgres", []string{"postgres", "pgx"}},
	server.PostgresNewest: {dbtest.PostgresNewest, "postgres", []string{"postgres", "pgx"}},
	server.OracleMySQL:    {dbtest.OracleMySQL, "mysql", []string{"mysql"}},
}

func TestServersBeyondEach(t *testing.T) {
	t.Parallel()
	for serverName, want := range beyondEach {
		t.Run(serverName, func(t *testing.T) {
			t.Parallel()
			for range 2 { // the second one must not see the first one's table
				db := want.make(t)
				if db.Name != want.name || db.Dialect.Name != want.name || db.Server != serverName {
					t.Errorf("name %s, dialect %s, server %s", db.Name, db.Dialect.Name, db.Server)
				}
				wantVersion(t, db)
				exec(t, db.DB, "CREATE TABLE t (id INT PRIMARY KEY)")
				for _, driver := range want.drivers {
					insertFromMany(t, db, db.OpenDSN(t, driver, db.DSN))
				}
			}
		})
	}
}

// insertFromMany runs statements with arguments on several connections concurrently, and
// empties the table.
func insertFromMany(t *testing.T, db *dbtest.DB, pool *sqlx.DB) {
	t.Helper()
	insert := "INSERT INTO t (id) VALUES (?)"
	if db.Name == "postgres" {
		insert = "INSERT INTO t (id) VALUES ($1)"
	}
	var all sync.WaitGroup
	for id := range 10 {
		all.Go(func() {
			if _, err := pool.ExecContext(t.Context(), insert, id); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	deleted, err := db.DB.ExecContext(t.Context(), "DELETE FROM t")
	if err != nil {
		t.Fatal(err)
	}
	if n, err := deleted.RowsAffected(); err != nil || n != 10 {
		t.Errorf("%d rows, error %v", n, err)
	}
}

func TestVersion(t *testing.T) {
	dbtest.Each(t, wantVersion)
}

func wantVersion(t *testing.T, db *dbtest.DB) {
	t.Helper()
	if v := db.Version(t); v == "" || strings.ContainsAny(v, " ()") {
		t.Errorf("version %q", v)
	}
}
