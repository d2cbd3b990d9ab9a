//go:build unix

package demo

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/sqllock/sqllock/internal/cli/exit"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
)

// demoTables counts the tables of demos in a database.
func demoTables(t *testing.T, db *dbtest.DB) (n int) {
	t.Helper()
	query := map[string]string{
		"sqlite":   "SELECT COUNT(*) FROM sqlite_master WHERE name LIKE '%SQLLOCK_DEMO%'",
		"postgres": "SELECT COUNT(*) FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = current_schema() AND relname LIKE '%sqllock_demo%'",
		"mysql":    "SELECT COUNT(*) FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE '%SQLLOCK_DEMO%'",
	}[db.Name]
	if err := db.DB.GetContext(t.Context(), &n, query); err != nil {
		t.Fatal(err)
	}
	return n
}

func TestDemoOnDatabases(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		p := program.Start(t, "", "demo", "--dsn", db.DSN, "--workers", "3", "--rounds", "6", "--ttl", "1500ms")
		p.Stdout.Await("has done round 1")
		if demoTables(t, db) == 0 {
			t.Error("the demo does not use this database")
		}
		program.Contains(t, p.Stdout.Rest(), "takes over", "overlaps                    0 ", "lost updates                0 ")
		p.WantCode(0)
		if n := demoTables(t, db); n != 0 {
			t.Errorf("%d tables are left", n)
		}
	})
}

// TestDemoInterrupted checks that a demo removes its tables after a signal, and when its
// output is closed.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	for name, interrupt := range map[string]func(*program.Program){
		"SIGINT":      func(p *program.Program) { p.Signal(os.Interrupt) },
		"SIGTERM":     func(p *program.Program) { p.Signal(syscall.SIGTERM) },
		"broken pipe": func(p *program.Program) { p.Stdout.File.Close() },
	} {
		p := program.Start(t, "", "demo", "--dsn", db.DSN)
		p.Stdout.Await("has done round 2")
		interrupt(p)
		p.WantCode(exit.Failure)
		if text := p.Stderr.Rest(); name != "broken pipe" && text != "sqllock: interrupted" {
			t.Errorf("%s: stderr %q", name, text)
		}
		if n := demoTables(t, db); n != 0 {
			t.Errorf("%s: %d tables are left", name, n)
		}
	}
}

// TestWorkerFailure checks the reason that is given for the end of a worker.
func TestWorkerFailure(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		code int
		text string
	}{
		"echo sqllock: no table >&2; exit 69": {exit.Database, "ended unexpectedly: no table"},
		"kill -KILL $$":                       {exit.Failure, "ended unexpectedly: signal: killed"},
		"exit 0":                              {exit.Failure, "ended unexpectedly: exit status 0"},
	} {
		w := newWorkers()
		p := &workerProcess{number: 2}
		//nolint:noctx // it ends by itself
		cmd := exec.Command("sh", "-c", script)
		cmd.Stderr = &p.stderr
		if err := w.start(p, cmd); err != nil {
			t.Fatal(err)
		}
		if e := <-w.events; e.Kind != ended || e.worker != 2 {
			t.Errorf("%s: event %+v", script, e)
		}
		err := p.failure()
		if exit.CodeOf(err) != want.code || !strings.HasPrefix(err.Error(), "worker 2 (process ") || !strings.HasSuffix(err.Error(), want.text) {
			t.Errorf("%s: %v", script, err)
		}
	}
}
