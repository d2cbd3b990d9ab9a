package server_test

import (
	"context"
	"database/sql"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/dbtest/server"
)

type starter struct {
	start  func(context.Context, string) (*server.Server, error)
	driver string
}

var starters = map[string]starter{
	"postgres": {server.StartPostgres, "postgres"},
	"mariadb":  {server.StartMariaDB, "mysql"},
}

// startNew starts a server that is stopped when the test ends. Only at a desk,
// and only for a reason, does it skip the test.
func startNew(t *testing.T, by starter) *server.Server {
	t.Helper()
	ci := os.Getenv("CI") == "true"
	if testing.Short() && !ci {
		t.Skip("SKIPPED with -short: starts real database servers")
	}
	scratch, err := server.NewScratch()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := scratch.Remove(); err != nil {
			t.Error(err)
		}
	})
	began := time.Now()
	s, err := by.start(t.Context(), scratch.Dir)
	if (errors.Is(err, server.ErrMissing) || errors.Is(err, errors.ErrUnsupported)) && !ci {
		t.Skipf("SKIPPED, no server to test with: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s was ready after %v", s.Name(), time.Since(began).Round(time.Millisecond))
	t.Cleanup(func() {
		if err := s.Stop(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func open(t *testing.T, driver, dsn string) *sql.DB {
	t.Helper()
	db, err := sql.Open(driver, dsn)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := db.Close(); err != nil {
			t.Error(err)
		}
	})
	return db
}

func exec(t *testing.T, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func count(t *testing.T, db *sql.DB, query string) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), query).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

func TestServerKeepsDataOverStopAndKill(t *testing.T) {
	for name, by := range starters {
		t.Run(name, func(t *testing.T) {
			s := startNew(t, by)
			db := open(t, by.driver, s.DSN())
			exec(t, db, "CREATE TABLE kept (id INT PRIMARY KEY)")
			exec(t, db, "INSERT INTO kept VALUES (1)")
			for _, end := range []func() error{s.Stop, s.Kill, s.Stop} {
				if err := end(); err != nil {
					t.Fatal(err)
				}
				if err := end(); err != nil {
					t.Fatalf("ending a server that is down: %v", err)
				}
				if err := db.PingContext(t.Context()); err == nil {
					t.Fatal("the server answers although it was ended")
				}
				if err := s.Restart(t.Context()); err != nil {
					t.Fatal(err)
				}
				// Read by a pool of its own, since db's still has connections
				// to the server that is gone.
				if n := count(t, open(t, by.driver, s.DSN()), "SELECT COUNT(*) FROM kept"); n != 1 {
					t.Errorf("%d rows after the restart, not 1", n)
				}
			}
		})
	}
}

func TestRestartOfRunningServer(t *testing.T) {
	s := startNew(t, starters["postgres"])
	dsn := s.DSN()
	if err := s.Restart(t.Context()); err != nil {
		t.Fatal(err)
	}
	if s.DSN() != dsn {
		t.Errorf("the DSN was %s and is %s", dsn, s.DSN())
	}
	count(t, open(t, "postgres", dsn), "SELECT 1")
}

func TestServerTakesManyConnections(t *testing.T) {
	for name, by := range starters {
		t.Run(name, func(t *testing.T) {
			s := startNew(t, by)
			db := open(t, by.driver, s.DSN())
			for range 250 {
				conn, err := db.Conn(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				defer conn.Close()
			}
		})
	}
}

func TestErrorTellsWhyServerDoesNotStart(t *testing.T) {
	s := startNew(t, starters["postgres"])
	if err := s.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(filepath.Dir(s.Log()), "data", "PG_VERSION")); err != nil {
		t.Fatal(err)
	}
	err := s.Restart(t.Context())
	if err == nil || !strings.Contains(err.Error(), "not a valid data directory") {
		t.Errorf("the server's own words are not in the error: %v", err)
	}
}

func TestStopTellsOfCrash(t *testing.T) {
	s := startNew(t, starters["postgres"])
	db := open(t, "postgres", s.DSN())
	// The first line of the file is the server's process id. The statement may
	// end in an error, since nobody may be left to answer it.
	_, _ = db.ExecContext(t.Context(), `COPY (SELECT 1) TO PROGRAM 'kill -QUIT $(head -n 1 postmaster.pid)'`)
	s.AwaitEnd()
	if err := s.Stop(); !errors.Is(err, server.ErrEnded) {
		t.Errorf("Stop returned %v, not ErrEnded", err)
	}
}

func TestRestartHeedsContext(t *testing.T) {
	s := startNew(t, starters["postgres"])
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := s.Restart(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Restart with a cancelled context: %v", err)
	}
	if err := s.Restart(t.Context()); err != nil {
		t.Errorf("Restart after that: %v", err)
	}
}
