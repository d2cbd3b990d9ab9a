package server_test

import (
	"bufio"
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	osexec "os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

var must = check.Must

// startKind starts a server of a kind, and those that it needs.
func startKind(ctx context.Context, kind server.Kind, dir string) (*server.Server, error) {
	behind := ""
	if kind.Behind != "" {
		s, err := startKind(ctx, server.KindOf(kind.Behind), dir)
		if err != nil {
			return nil, err
		}
		behind = s.DSN()
	}
	return kind.Start(ctx, filepath.Join(dir, kind.Name), behind)
}

// need skips the test if the server is not to be started in this run, and reports whether it is
// required.
func need(t *testing.T, name string) (required bool) {
	t.Helper()
	dbtest.OwnServers(t)
	required = check.Value(server.Required(name))(t)
	if !dbtest.All() || testing.Short() && !required {
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

// beParent makes a copy of this program start a server and leave it behind. It does nothing in other
// processes. The copy exits with exitMissing if there is no such server.
func beParent() {
	name := os.Getenv(parentOf)
	if name == "" {
		return
	}
	s, err := startKind(context.Background(), server.KindOf(name), os.Getenv("SQLLOCK_TEST_DIR"))
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		if isMissing(err) {
			os.Exit(exitMissing)
		}
		os.Exit(1)
	}
	fmt.Println(s.DSN())
	select {} // until killed
}

const (
	parentOf    = "SQLLOCK_TEST_PARENT_OF"
	exitMissing = 77
)

// TestServerDiesWithItsParent takes seconds, because starts of servers do.
func TestServerDiesWithItsParent(t *testing.T) {
	for _, kind := range server.Kinds {
		if kind.Start == nil {
			continue
		}
		t.Run(kind.Name, func(t *testing.T) {
			required := need(t, kind.Name)
			scratch := check.Value(server.NewScratch())(t)
			parent := osexec.CommandContext(t.Context(), os.Args[0])
			parent.Env = append(os.Environ(), parentOf+"="+kind.Name, "SQLLOCK_TEST_DIR="+scratch.Dir)
			parent.Stderr = os.Stderr
			out := check.Value(parent.StdoutPipe())(t)
			must(t, parent.Start())
			lines := bufio.NewScanner(out)
			if !lines.Scan() {
				_ = parent.Wait() // its error is the exit code
				if parent.ProcessState.ExitCode() == exitMissing && !required {
					t.Skip("SKIPPED, no server to test with")
				}
				t.Fatal("the copy has started no server")
			}
			orphan := open(t, lines.Text())
			orphan.SetMaxIdleConns(0) // each ping is a new connection
			must(t, orphan.PingContext(t.Context()))
			must(t, parent.Process.Kill())
			_ = parent.Wait() // it was killed
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			for orphan.PingContext(ctx) == nil {
				time.Sleep(10 * time.Millisecond)
			}
			if ctx.Err() != nil {
				t.Fatal("the server outlives its parent")
			}
			must(t, scratch.Remove())
		})
	}
}

// startNew starts a server that is stopped when the test ends.
func startNew(t *testing.T, name string) *server.Server {
	t.Helper()
	required := need(t, name)
	scratch := check.Value(server.NewScratch())(t)
	t.Cleanup(func() { must(t, scratch.Remove()) })
	s, err := startKind(t.Context(), server.KindOf(name), scratch.Dir)
	if isMissing(err) && !required {
		t.Skipf("SKIPPED, no server to test with: %v", err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, s.Stop()) })
	return s
}

func open(t *testing.T, dsn string) *sql.DB {
	t.Helper()
	driver := "mysql"
	if strings.HasPrefix(dsn, "postgres:") {
		driver = "postgres"
	}
	db := check.Value(sql.Open(driver, dsn))(t)
	t.Cleanup(func() { must(t, db.Close()) })
	return db
}

// TestServerThatEnds crashes a server by itself.
func TestServerThatEnds(t *testing.T) {
	s := startNew(t, server.Postgres)
	crash := func() {
		// The first line of the file is the server's process id. The statement may fail,
		// since the server may end before it responds.
		_, _ = open(t, s.DSN()).ExecContext(t.Context(), `COPY (SELECT 1) TO PROGRAM 'kill -QUIT $(head -n 1 postmaster.pid)'`)
	}
	why := make(chan error, 1)
	stop := s.Supervise(t.Context(), func(err error) { why <- err })
	crash()
	check.Is(t, <-why, server.ErrEnded)
	for open(t, s.DSN()).PingContext(t.Context()) != nil {
		time.Sleep(10 * time.Millisecond)
	}
	stop()
	must(t, s.Stop())
	version := filepath.Join(filepath.Dir(s.Log()), "data", "PG_VERSION")
	must(t, os.Rename(version, version+".away"))
	if err := s.Restart(t.Context()); err == nil || !strings.Contains(err.Error(), "not a valid data directory") {
		t.Errorf("the server's message is not in the error: %v", err)
	}
	must(t, errors.Join(os.Rename(version+".away", version), s.Restart(t.Context())))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	check.Is(t, s.Restart(ctx), context.Canceled)
}
