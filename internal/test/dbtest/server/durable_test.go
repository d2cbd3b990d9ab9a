package server_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// scratch returns a directory for servers. They must be stopped before the test ends.
func scratch(t *testing.T) string {
	t.Helper()
	dbtest.OwnServers(t)
	if !dbtest.All() {
		t.Skip("SKIPPED: make test-all starts this server; so do the tests in reliability")
	}
	if testing.Short() {
		t.Skip("SKIPPED with -short: starts real database servers")
	}
	s, err := server.NewScratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Remove(); err != nil {
			t.Error(err)
		}
	})
	return s.Dir
}

// running stops the servers when the test ends. If err is not nil, it fails the test, or
// skips it if there is no such server.
func running(t *testing.T, err error, servers ...*server.Server) {
	t.Helper()
	if isMissing(err) {
		t.Skipf("SKIPPED, no server to test with: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range servers {
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
}

func TestDurableServers(t *testing.T) {
	for name, durable := range map[string]struct {
		start            func(context.Context, string) (*server.Server, error)
		driver, question string
	}{
		"postgres": {
			server.StartDurablePostgres, "postgres",
			"SELECT COUNT(*) FROM pg_settings WHERE name IN ('fsync', 'synchronous_commit', 'full_page_writes') AND setting = 'on'",
		},
		"mysql": {
			server.StartDurableMariaDB, "mysql",
			"SELECT @@innodb_flush_log_at_trx_commit + 2 * @@innodb_doublewrite",
		},
	} {
		t.Run(name, func(t *testing.T) {
			s, err := durable.start(t.Context(), filepath.Join(scratch(t), "durable"))
			running(t, err, s)
			if n := count(t, open(t, durable.driver, s.DSN()), durable.question); n != 3 {
				t.Errorf("%d: committed transactions can be lost", n)
			}
		})
	}
}

// It takes seconds: four servers are started.
func TestPairFailsOver(t *testing.T) {
	for name, pair := range map[string]struct {
		start   func(context.Context, string) (primary, replica *server.Server, err error)
		promote func(*server.Server, context.Context) error
		driver  string
		visible bool // on the replica, as soon as it is committed
	}{
		"postgres": {server.StartPostgresPair, (*server.Server).Promote, "postgres", true},
		"mysql":    {server.StartMariaDBPair, (*server.Server).PromoteMariaDB, "mysql", false},
	} {
		t.Run(name, func(t *testing.T) {
			primary, replica, err := pair.start(t.Context(), scratch(t))
			running(t, err, primary, replica)
			db := open(t, pair.driver, primary.DSN())
			if _, err := db.ExecContext(t.Context(), "CREATE TABLE t AS SELECT 7 AS n"); err != nil {
				t.Fatal(err)
			}
			standby := open(t, pair.driver, replica.DSN())
			if pair.visible {
				if n := count(t, standby, "SELECT n FROM t"); n != 7 {
					t.Fatalf("the replica has %d", n)
				}
			}
			if err := primary.Kill(); err != nil {
				t.Fatal(err)
			}
			if err := pair.promote(replica, t.Context()); err != nil {
				t.Fatal(err)
			}
			if n := count(t, standby, "SELECT n FROM t"); n != 7 {
				t.Errorf("the promoted replica has %d", n)
			}
			if _, err := standby.ExecContext(t.Context(), "INSERT INTO t VALUES (8)"); err != nil {
				t.Errorf("it is not a primary: %v", err)
			}
		})
	}
}
