//go:build unix

package main

import (
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// demoTables counts what a demo may have left in a database.
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
		p := start(t, "", "demo", "--dsn", db.DSN, "--workers", "3", "--rounds", "6", "--ttl", "1500ms")
		p.stdout.await("has done round 1")
		if demoTables(t, db) == 0 {
			t.Error("the demo is not on this database")
		}
		contains(t, p.stdout.rest(), "takes over", "overlaps seen               0 ", "updates lost                0 ")
		p.wantCode(0)
		if n := demoTables(t, db); n != 0 {
			t.Errorf("%d tables are left", n)
		}
	})
}

// TestDemoInterrupted cleans up when it is asked to end, and when nobody reads
// any more.
func TestDemoInterrupted(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	for name, interrupt := range map[string]func(*program){
		"SIGINT":      func(p *program) { p.signal(os.Interrupt) },
		"SIGTERM":     func(p *program) { p.signal(syscall.SIGTERM) },
		"broken pipe": func(p *program) { p.stdout.file.Close() },
	} {
		p := start(t, "", "demo", "--dsn", db.DSN)
		p.stdout.await("has done round 2")
		interrupt(p)
		p.wantCode(exitFailure)
		if n := demoTables(t, db); n != 0 {
			t.Errorf("%s: %d tables are left", name, n)
		}
	}
}

// TestWorkerFailure wants the reason why a worker ended.
func TestWorkerFailure(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]struct {
		code int
		text string
	}{
		"echo sqllock: no table >&2; exit 69": {exitDatabase, "ended unexpectedly: no table"},
		"kill -KILL $$":                       {exitFailure, "ended unexpectedly: signal: killed"},
		"exit 0":                              {exitFailure, "ended unexpectedly: exit status 0"},
	} {
		tr := &troupe{events: make(chan demoEvent), leaving: make(chan struct{})}
		w := &demoWorker{number: 2}
		//nolint:noctx // it ends by itself
		cmd := exec.Command("sh", "-c", script)
		cmd.Stderr = &w.stderr
		if err := tr.start(w, cmd); err != nil {
			t.Fatal(err)
		}
		if e := <-tr.events; e.Kind != demoEnded || e.worker != w {
			t.Errorf("%s: event %+v", script, e)
		}
		err := w.failure()
		if codeOf(err) != want.code || !strings.HasPrefix(err.Error(), "worker 2 (process ") || !strings.HasSuffix(err.Error(), want.text) {
			t.Errorf("%s: %v", script, err)
		}
	}
}
