//go:build unix

package cli

import (
	"net"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
)

// trialTables returns the tables of trials in a database.
func trialTables(t *testing.T, db *dbtest.DB) (names []string) {
	t.Helper()
	query := map[string]string{
		"sqlite":   "SELECT name FROM sqlite_master WHERE name LIKE '%SQLLOCK%'",
		"postgres": "SELECT relname FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE nspname = current_schema() AND relname LIKE '%sqllock%'",
		"mysql":    "SELECT table_name FROM information_schema.tables WHERE table_schema = DATABASE() AND table_name LIKE '%SQLLOCK%'",
	}[db.Name]
	check.Must(t, db.DB.SelectContext(t.Context(), &names, query))
	return names
}

func isLocks(table string) bool { return strings.HasSuffix(strings.ToUpper(table), "_LOCK") }

// wantLines checks that each of the regular expressions matches a line of out.
func wantLines(t *testing.T, out string, lines ...string) {
	t.Helper()
	for _, line := range lines {
		if !regexp.MustCompile(`(?m)^` + line + `$`).MatchString(out) {
			t.Errorf("no line %s in:\n%s", line, out)
		}
	}
}

// TestDemoOnDatabases checks that the processes exclude each other on every kind of database. No lease of an hour
// ends too soon on a slow machine. The test itself ends the killed worker's lease, and the demo reports that another
// worker took over too early.
func TestDemoOnDatabases(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		p := program.Start(t, "", "demo", "--dsn", db.DSN, "--workers", "3", "--rounds", "6", "--ttl", "1h")
		p.Stdout.Await("is killed (SIGKILL); its lease has 3")
		tables := trialTables(t, db)
		locks := slices.IndexFunc(tables, isLocks)
		if locks < 0 {
			t.Fatalf("the demo does not use this database, which has %q", tables)
		}
		db.Shorten(t, tables[locks], int(time.Hour/time.Second))
		wantLines(t, p.Stdout.Rest(), `.* takes over, .*`, `overlaps +0`, `lost updates +0 .*`, `.* Please report it: a takeover before the lease had expired\.`)
		p.WantCode(exit.Failure)
		check.Same(t, "tables left", trialTables(t, db), nil)
	})
}

// TestDemo runs a demo with a lease that ends by itself, in a directory of temporary files that has an unusual name:
// there are no overlaps, no lost updates, no takeover before the lease has expired, and nothing is left. In a slow
// round, a worker loses its lease, and the demo fails.
func TestDemo(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	temporary := filepath.Join(t.TempDir(), "t?mp")
	check.Must(t, os.Mkdir(temporary, 0o700))
	program.WithTTL(t, time.Second, func(ttl time.Duration) (longEnough bool) {
		p := program.StartAs(t, "", "env", "TMPDIR="+temporary, "sqllock", "demo", "--workers", "3", "--rounds", "9", "--ttl", ttl.String())
		code, out, said := p.Code(), p.Stdout.Rest(), p.Stderr.Rest()
		if files, err := os.ReadDir(temporary); err != nil || len(files) > 0 {
			t.Errorf("files %v are left, error %v", files, err)
		}
		if code != 0 {
			t.Logf("exit code %d: %s\n%s", code, said, out)
			return false
		}
		if said != "" || strings.Contains(out, "OVERLAP") {
			t.Errorf("stderr %q, stdout:\n%s", said, out)
		}
		wantLines(t, out,
			`3 processes repeatedly add 1 to the number in a file\. A process works only while it holds a lock.*`,
			`.* holds the lock and is killed \(SIGKILL\); its lease has \d+\.\d\d s left, .*`,
			`.* takes over, \d+\.\d\d s after the kill`,
			`.* has done round 9 of 9, waited \d+\.\d\d s, held \d+\.\d\d s; the file contains 9`,
			`overlaps +0`,
			`lost updates +0 \(9 rounds, the file contains 9\)`,
			`takeover +\d+\.\d\d s after the kill \(lease left: \d+\.\d\d s of `+ttl.String()+`\)`,
			`No two of the 3 processes worked at the same time.*`)
		return true
	})
}

// TestInterrupted checks that nothing is left of a trial after a signal, when its output is closed, and when the
// terminal is: the shell in that repeats the system's signal. It takes seconds, because it runs several trials.
func TestInterrupted(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	for name, test := range map[string]struct {
		interrupt func(*program.Program)
		code      int
	}{
		"SIGINT":      {func(p *program.Program) { p.Signal(os.Interrupt) }, 130},
		"SIGTERM":     {func(p *program.Program) { p.Signal(syscall.SIGTERM) }, 143},
		"SIGQUIT":     {func(p *program.Program) { p.Signal(syscall.SIGQUIT) }, 131},
		"SIGHUPs":     {hangUp, 129},
		"broken pipe": {func(p *program.Program) { p.Stdout.File.Close() }, exit.Failure},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, trial := range []string{"demo", "verify"} {
				if trial == "verify" && name == "broken pipe" { // it prints at its end
					continue
				}
				db, temporary := dbtest.SQLite(t), t.TempDir()
				p := program.StartAs(t, "", "env", "TMPDIR="+temporary, "sqllock", trial, "--dsn", db.DSN, "--ttl", "1h")
				awaitRounds(t, db)
				test.interrupt(p)
				p.WantCode(test.code)
				if text := p.Stderr.Rest(); name != "broken pipe" && text != "sqllock: interrupted" {
					t.Errorf("%s: stderr %q", trial, text)
				}
				check.Same(t, trial+": tables left", trialTables(t, db), nil)
				check.Same(t, trial+": files left", check.Value(os.ReadDir(temporary))(t), []os.DirEntry{})
			}
		})
	}
}

// TestInterruptedConnection has a server that accepts connections and says nothing. The signal is no error of the database.
func TestInterruptedConnection(t *testing.T) {
	t.Parallel()
	listener := check.Value(new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0"))(t)
	defer listener.Close()
	for _, scheme := range []string{"postgres", "mysql"} {
		for _, args := range [][]string{{"list"}, {"migrate", "up"}, {"doctor"}} {
			p := program.Start(t, scheme+"://app@"+listener.Addr().String()+"/app", args...)
			conn := check.Value(listener.Accept())(t)
			defer conn.Close()
			p.Signal(syscall.SIGTERM)
			p.WantCode(143)
			check.Equal(t, "stderr", p.Stderr.Rest(), "sqllock: interrupted")
		}
	}
}

// awaitRounds waits until workers of a trial acquire its lock.
func awaitRounds(t *testing.T, db *dbtest.DB) {
	t.Helper()
	const rounds = 2 // the second is that of a worker
	for token := 0; token < rounds; {
		_ = db.DB.GetContext(t.Context(), &token, "SELECT seq FROM sqlite_sequence WHERE name LIKE 'SQLLOCK%LOCK_FENCE'") // it may not be there yet
	}
}

// hangUp sends SIGHUP until the process has ended.
func hangUp(p *program.Program) {
	go func() {
		for p.Cmd.Process.Signal(syscall.SIGHUP) == nil { //nolint:revive // as often as it can
		}
	}()
}

// TestVerifyOnDatabases verifies two nodes that are one server, which keeps all promises. Two databases break
// exclusion, and so does a server whose locks are deleted. Where the machine was too slow for the lease, it tries a
// longer one.
func TestVerifyOnDatabases(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		ofTwo := program.Start(t, "", "verify", "--dsn", dbtest.SQLite(t).DSN, "--dsn", db.DSN) // waits ten seconds for the tables
		program.WithTTL(t, 2*time.Second, func(ttl time.Duration) (longEnough bool) {
			p := program.Start(t, "", "verify", "--dsn", db.DSN, "--dsn", db.DSN, "--for", "3s", "--ttl", ttl.String())
			code, out, said := p.Code(), p.Stdout.Rest(), p.Stderr.Rest()
			check.Same(t, "tables left", trialTables(t, db), nil)
			if code != 0 {
				t.Logf("exit code %d: %s\n%s", code, said, out)
				return false
			}
			wantLines(t, out,
				`✓ exclusion  4 processes have had the lock \d+ times: overlaps 0, lost updates 0`,
				`✓ expiry     the lock of a killed process was acquired \d+\.\d\d s after the kill; its lease had \d+\.\d\d s left`,
				`✓ tokens     \d+ tokens, each above the one before`,
				`✓ guard      a transaction that lasted longer than its lease kept the next process out until its COMMIT`,
				`✓ clocks     at most .* apart, and .* from this host's pace`)
			return true
		})
		// As a failover that forgets: the rows of locks go while they are held.
		program.WithTTL(t, 2*time.Second, func(ttl time.Duration) (longEnough bool) {
			p := program.Start(t, "", "verify", "--dsn", db.DSN, "--for", (ttl * 5 / 2).String(), "--ttl", ttl.String())
			code := make(chan int, 1)
			go func() { code <- p.Code() }()
			for len(code) == 0 {
				tables := trialTables(t, db)
				if i := slices.IndexFunc(tables, isLocks); i >= 0 {
					_, _ = db.DB.ExecContext(t.Context(), "DELETE FROM "+tables[i]) // it may be gone
				}
				time.Sleep(50 * time.Millisecond) // the pace of the deletions: locks must be acquired in between
			}
			ended, out := <-code, p.Stdout.Rest()
			if ended == 0 {
				return false // no two of them have met
			}
			check.Equal(t, "exit code", ended, exit.Failure)
			wantLines(t, out, `✗ exclusion  4 processes have had the lock .*`)
			return true
		})
		ofTwo.WantCode(exit.Failure)
		wantLines(t, ofTwo.Stdout.Rest(), `✗ exclusion  database 2 does not have the tables .*`)
		check.Same(t, "tables left", trialTables(t, db), nil)
	})
}
