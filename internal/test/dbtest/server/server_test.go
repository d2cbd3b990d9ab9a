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

	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

type starter struct {
	// start returns the server under test last, after the servers that it needs.
	start  func(ctx context.Context, dir string) ([]*server.Server, error)
	driver string
}

// starters are the servers by the names of [server.Kinds].
var starters = map[string]starter{
	server.Postgres:       {alone(server.StartPostgres), "postgres"},
	server.PgBouncer:      {startBouncer, "postgres"},
	server.PostgresNewest: {alone(server.StartPostgresNewest), "postgres"},
	server.MySQL:          {alone(server.StartMariaDB), "mysql"},
	server.OracleMySQL:    {alone(server.StartOracleMySQL), "mysql"},
}

func alone(start func(context.Context, string) (*server.Server, error)) func(context.Context, string) ([]*server.Server, error) {
	return func(ctx context.Context, dir string) ([]*server.Server, error) {
		s, err := start(ctx, dir)
		if err != nil {
			return nil, err
		}
		return []*server.Server{s}, nil
	}
}

func startBouncer(ctx context.Context, dir string) ([]*server.Server, error) {
	behind, err := server.StartPostgres(ctx, filepath.Join(dir, "behind"))
	if err != nil {
		return nil, err
	}
	bouncer, err := server.StartPgBouncer(ctx, filepath.Join(dir, "bouncer"), behind.DSN())
	if err != nil {
		return nil, errors.Join(err, behind.Stop())
	}
	return []*server.Server{behind, bouncer}, nil
}

// need skips the test if the server is not to be started in this run, and reports whether it is
// required.
func need(t *testing.T, name string) (required bool) {
	t.Helper()
	dbtest.OwnServers(t)
	required, err := server.Required(name)
	if err != nil {
		t.Fatal(err)
	}
	if testing.Short() && !required {
		t.Skip("SKIPPED with -short: starts real database servers")
	}
	if !dbtest.All() {
		t.Skip("SKIPPED: make test-all tests how servers start and end")
	}
	if wanted, err := server.Wanted(name); err != nil || !wanted && !required {
		t.Skipf("SKIPPED: %s does not name %s (%v)", server.ServersVariable, name, err)
	}
	return required
}

func isMissing(err error) bool {
	return errors.Is(err, server.ErrMissing) || errors.Is(err, errors.ErrUnsupported)
}

// startNew starts a server that is stopped when the test ends. If the server is missing and not
// required, it skips the test.
func startNew(t *testing.T, name string) *server.Server {
	t.Helper()
	required := need(t, name)
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
	servers, err := starters[name].start(t.Context(), scratch.Dir)
	if isMissing(err) && !required {
		t.Skipf("SKIPPED, no server to test with: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%s was ready after %v", name, time.Since(began).Round(time.Millisecond))
	for _, s := range servers {
		t.Cleanup(func() {
			if err := s.Stop(); err != nil {
				t.Error(err)
			}
		})
	}
	return servers[len(servers)-1]
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

// TestServers uses one server of each kind for all tests of what servers have in common. It takes
// seconds, because starts and stops of servers do.
func TestServers(t *testing.T) {
	for name, by := range starters {
		t.Run(name, func(t *testing.T) {
			s := startNew(t, name)
			t.Run("takes many connections", func(t *testing.T) { takesManyConnections(t, s, by.driver) })
			t.Run("does not respond while paused", func(t *testing.T) { doesNotRespondWhilePaused(t, s, by.driver) })
			t.Run("keeps data over stop and kill", func(t *testing.T) { keepsData(t, s, by.driver) })
		})
	}
}

func takesManyConnections(t *testing.T, s *server.Server, driver string) {
	t.Helper()
	db := open(t, driver, s.DSN())
	for range 250 {
		conn, err := db.Conn(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
	}
}

func doesNotRespondWhilePaused(t *testing.T, s *server.Server, driver string) {
	t.Helper()
	db := open(t, driver, s.DSN())
	count(t, db, "SELECT 1")
	if err := s.Pause(); err != nil {
		t.Fatal(err)
	}
	answered := make(chan error, 1)
	go func() { answered <- db.PingContext(t.Context()) }()
	silence := time.NewTimer(200 * time.Millisecond)
	select {
	case err := <-answered:
		t.Errorf("the server responds: %v", err)
		answered <- err
	case <-silence.C:
	}
	if err := s.Resume(); err != nil {
		t.Fatal(err)
	}
	if err := <-answered; err != nil {
		t.Errorf("the server does not respond: %v", err)
	}
}

func keepsData(t *testing.T, s *server.Server, driver string) {
	t.Helper()
	db := open(t, driver, s.DSN())
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
		// Read with another pool, since db still has connections to the former server.
		if n := count(t, open(t, driver, s.DSN()), "SELECT COUNT(*) FROM kept"); n != 1 {
			t.Errorf("%d rows after the restart, not 1", n)
		}
	}
}

// TestRestart uses one server, which each subtest leaves running.
func TestRestart(t *testing.T) {
	s := startNew(t, server.Postgres)
	t.Run("of a running server", func(t *testing.T) {
		dsn := s.DSN()
		if err := s.Restart(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s.DSN() != dsn {
			t.Errorf("the DSN was %s and is %s", dsn, s.DSN())
		}
		count(t, open(t, "postgres", dsn), "SELECT 1")
	})
	t.Run("checks its context", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := s.Restart(ctx); !errors.Is(err, context.Canceled) {
			t.Errorf("Restart with a cancelled context: %v", err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Errorf("Restart after that: %v", err)
		}
	})
	t.Run("after a crash, which Stop reports", func(t *testing.T) {
		db := open(t, "postgres", s.DSN())
		// The first line of the file is the server's process id. The statement may fail,
		// since the server may end before it responds.
		_, _ = db.ExecContext(t.Context(), `COPY (SELECT 1) TO PROGRAM 'kill -QUIT $(head -n 1 postmaster.pid)'`)
		s.AwaitEnd()
		if err := s.Stop(); !errors.Is(err, server.ErrEnded) {
			t.Errorf("Stop returned %v, not ErrEnded", err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Error(err)
		}
	})
	t.Run("after a crash, by its supervisor", func(t *testing.T) {
		why := make(chan error, 1)
		stop := s.Supervise(t.Context(), func(err error) { why <- err })
		db := open(t, "postgres", s.DSN())
		_, _ = db.ExecContext(t.Context(), `COPY (SELECT 1) TO PROGRAM 'kill -QUIT $(head -n 1 postmaster.pid)'`)
		if err := <-why; !errors.Is(err, server.ErrEnded) {
			t.Errorf("the supervisor says %v, not ErrEnded", err)
		}
		if err := s.Stop(); err != nil { // it runs, and is not started again
			t.Errorf("Stop after that: %v", err)
		}
		if err := s.Restart(t.Context()); err != nil {
			t.Error(err)
		}
		stop()
		if len(why) > 0 {
			t.Error("the supervisor has started a server that was stopped")
		}
	})
	t.Run("says why the server does not start", func(t *testing.T) {
		if err := s.Stop(); err != nil {
			t.Fatal(err)
		}
		version := filepath.Join(filepath.Dir(s.Log()), "data", "PG_VERSION")
		if err := os.Rename(version, version+".away"); err != nil {
			t.Fatal(err)
		}
		err := s.Restart(t.Context())
		if err == nil || !strings.Contains(err.Error(), "not a valid data directory") {
			t.Errorf("the server's message is not in the error: %v", err)
		}
		if err := errors.Join(os.Rename(version+".away", version), s.Restart(t.Context())); err != nil {
			t.Error(err)
		}
	})
}
