//go:build unix

package exec

import (
	"context"
	"fmt"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
)

// TestExecKilled kills an exec with SIGKILL. Its command ends with it, and the next exec acquires the lock when the
// lease has expired, not before. It takes seconds: the lease of the killed exec has to expire.
func TestExecKilled(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		r := migrated(t, db)
		first := program.Start(t, db.DSN, "exec", "--ttl", "1h", "nightly", "--", "sh", "-c", "echo inside; exec sleep 1000")
		first.Stdout.Await("inside")
		second := program.Start(t, db.DSN, "exec", "-v", "nightly", "--", "true")
		second.Stderr.Await("waiting for")
		first.Signal(syscall.SIGKILL)
		first.Stdout.Rest() // ends when the command has

		read := time.Now()
		row, ok, err := r.Peek(t.Context(), "nightly") // it is not renewed any more
		if err != nil || !ok {
			t.Fatal(row, ok, err)
		}
		sooner := (row.Left - 300*time.Millisecond).Truncate(time.Second)
		db.Shorten(t, "INT_LOCK", int(sooner/time.Second))
		second.Stderr.Await("acquired")
		if waited, left := time.Since(read), row.Left-sooner; waited < left-clockPrecision {
			t.Errorf("the second acquired the lock after %v, the lease had %v left", waited, left)
		}
		second.WantCode(0)
	})
}

// TestExecLosesTheLease has a lease end with --no-renew, and deletes one row of several that were renewed for longer
// than their time-to-live. Both end the command.
func TestExecLosesTheLease(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	why := map[string]string{
		"nightly": "its time-to-live of ", "a, b": "its row was deleted", "k": "its row was deleted",
	}
	for name, flags := range map[string][]string{
		"nightly": {"nightly", "--no-renew"},
		"a, b":    {"a", "--key", "b"},
		"k":       {"k", "--permits", "2", "--take", "2"},
	} {
		db := dbtest.SQLite(t)
		r := migrated(t, db)
		program.WithTTL(t, 500*time.Millisecond, func(ttl time.Duration) (longEnough bool) {
			args := append([]string{"exec", "--grace", "1h", "--ttl", ttl.String()}, flags...)
			p := program.Start(t, db.DSN, append(args, "--", "sh", "-c", "echo inside; exec sleep 1000")...)
			if !p.Stdout.Find("inside") {
				return false
			}
			if name != "nightly" {
				// real time: for renewals to be due; program.WithTTL tries a longer lease where the machine was too slow
				time.Sleep(2 * ttl)
				rows := check.Value(r.List(t.Context()))(t)
				if len(rows) != 2 || slices.ContainsFunc(rows, sqllock.Row.Expired) {
					return false
				}
				db.DB.MustExecContext(t.Context(), "DELETE FROM INT_LOCK WHERE LOCK_KEY = (SELECT max(LOCK_KEY) FROM INT_LOCK)")
			}
			p.WantCode(exit.LockLost)
			program.Contains(t, p.Stderr.Rest(),
				fmt.Sprintf("sqllock: the lock %q is lost: the command gets SIGTERM, and SIGKILL if it is still running after 1h0m\n", name),
				fmt.Sprintf("sqllock: the lock %q was lost while the command ran: %s", name, why[name]), "; the command ended with signal: terminated")
			return true
		})
	}
}

// TestExecSaysWhoHasTheLock has another process acquire the lock while the command runs, as after unlock --force.
func TestExecSaysWhoHasTheLock(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		r := migrated(t, db)
		p := program.Start(t, db.DSN, "exec", "--ttl", "1h", "nightly", "--", "sh", "-c", "echo inside; exec sleep 1000")
		p.Stdout.Await("inside")
		row, _, err := r.Peek(t.Context(), "nightly")
		check.Must(t, err)
		check.Must(t, check.ErrorOf(r.DeleteRow(t.Context(), row)))
		check.Must(t, check.ErrorOf(r.Acquire(t.Context(), "nightly", "other", time.Hour)))
		p.Signal(syscall.SIGTERM) // it ends the command, and the release finds the row
		p.WantCode(exit.LockLost)
		program.Contains(t, p.Stderr.Rest(), "while the command ran: its row was deleted, or another process has taken it over; the command ended with signal: terminated; other has it now")
	})
}

// TestSignalsAreForwarded sends exec and lead signals that their command handles. SIGTERM ends lead with the code of
// the command, too.
func TestSignalsAreForwarded(t *testing.T) {
	t.Parallel()
	for _, subcommand := range []string{"exec", "lead"} {
		t.Run(subcommand, func(t *testing.T) {
			t.Parallel()
			db := dbtest.SQLite(t)
			r := migrated(t, db)
			signals := map[syscall.Signal]string{syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT", syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2"}
			if subcommand == "exec" {
				signals[syscall.SIGINT] = "INT" // it ends lead
			}
			p := program.Start(t, db.DSN, subcommand, "--ttl", "1h", "nightly", "--", "sh", "-c",
				// The shell runs its traps at once, because sleep is in the background.
				`for s in INT HUP QUIT USR1 USR2; do trap "echo got $s" $s; done; trap 'exit 5' TERM; echo inside; while :; do sleep 60 & wait; done`)
			p.Stdout.Await("inside")
			for signal, name := range signals {
				p.Signal(signal)
				p.Stdout.Await("got " + name)
			}
			p.Signal(syscall.SIGTERM)
			p.WantCode(5)
			if _, ok, err := r.Peek(t.Context(), "nightly"); ok || err != nil {
				t.Errorf("the lock was not released: %v, %v", ok, err)
			}
		})
	}
}

// TestSignalledWhileWaiting ends the wait of exec, and the campaign of lead, by signals. The holder keeps the lock.
// The last time the database does not answer: then it takes 2 s to close the connection.
func TestSignalledWhileWaiting(t *testing.T) {
	t.Parallel()
	for subcommand, signals := range map[string][]syscall.Signal{
		"exec": {syscall.SIGINT, syscall.SIGUSR1, syscall.SIGTERM},
		"lead": {syscall.SIGINT, syscall.SIGTERM},
	} {
		t.Run(subcommand, func(t *testing.T) {
			t.Parallel()
			proxy := newProxy(t)
			holder := proxy.repository.NewHolder()
			if got, err := proxy.repository.Acquire(t.Context(), "nightly", holder, time.Hour); err != nil || !got.Acquired {
				t.Fatal(got, err)
			}
			for i, signal := range append(signals, syscall.SIGTERM) {
				p := program.Start(t, proxy.dsn, subcommand, "-v", "nightly", "--", "echo", "never")
				p.Stderr.Await(map[string]string{"exec": `waiting for "nightly", held by ` + holder, "lead": `waiting for "nightly", led by `}[subcommand])
				if i == len(signals) {
					proxy.Silence()
				}
				p.Signal(signal)
				p.WantCode(128 + int(signal))
				check.Equal(t, "stdout", p.Stdout.Rest(), "")
			}
			row, _, err := proxy.repository.Peek(t.Context(), "nightly")
			if err != nil || row.Holder != holder {
				t.Errorf("row %+v, %v", row, err)
			}
		})
	}
}

// TestExecWaitsThroughAnOutage: nobody answers while exec waits, as while a server is restarted, and then the lock becomes free.
// With --no-outages the wait ends, and with a limit that the outage outlasts.
func TestExecWaitsThroughAnOutage(t *testing.T) {
	t.Parallel()
	for flag, want := range map[string]int{"--no-outages": exit.Database, "--wait=10s": exit.Database, "--no-outages=false": 0} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			proxy := newProxy(t)
			holder := proxy.repository.NewHolder()
			if got, err := proxy.repository.Acquire(t.Context(), "nightly", holder, time.Hour); err != nil || !got.Acquired {
				t.Fatal(got, err)
			}
			p := program.Start(t, proxy.dsn, "exec", "-v", flag, "nightly", "--", "echo", "inside")
			p.Stderr.Await(`waiting for "nightly", held by ` + holder)
			server := proxy.LeadTo("")
			if want == exit.Database {
				p.WantCode(want)
				check.Equal(t, "stdout", p.Stdout.Rest(), "")
				return
			}
			// Without WaitThroughOutages a call tries a hundred times before it fails.
			eventually(t, "exec has waited through an outage", func() bool { return proxy.Refused() > 110 })
			proxy.LeadTo(server)
			if deleted, err := proxy.repository.Delete(t.Context(), "nightly", holder); err != nil || !deleted {
				t.Fatal(deleted, err)
			}
			p.WantCode(want)
			check.Equal(t, "stdout", p.Stdout.Rest(), "inside")
		})
	}
}

// TestExecSilence: a server that does not answer is no lock that is taken, be it asked once, for a short or a long time.
func TestExecSilence(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	for _, flag := range []string{"--nonblock", "--wait=1s", "--wait=6s"} {
		t.Run(flag, func(t *testing.T) {
			t.Parallel()
			code := 0
			for delay := 100 * time.Millisecond; code == 0; delay *= 2 { // until exec is silenced before it has the lock
				proxy := newProxy(t)
				proxy.Delay(delay)
				p := program.Start(t, proxy.dsn, "exec", "-v", flag, "nightly", "--", "true")
				p.Stderr.Await("locks are in ")
				proxy.Silence()
				code = p.Code()
			}
			check.Equal(t, "exit code", code, exit.Database)
		})
	}
}

// TestExecDeadConnection freezes a connection, as a failover does. The lease is renewed over another.
func TestExecDeadConnection(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	proxy := newProxy(t)
	// The second attempt must succeed within a quarter of the time-to-live.
	program.WithTTL(t, 3*time.Second, func(ttl time.Duration) (longEnough bool) {
		p := program.Start(t, proxy.dsn, "exec", "--ttl", ttl.String(), "nightly", "--", "sh", "-c", "echo inside; read wait")
		if !p.Stdout.Find("inside") {
			return false
		}
		ctx, found := context.WithCancel(t.Context())
		go func() { // more than once: the statement that writes names may have taken the dead connection
			for tick := time.Tick(ttl); ; {
				proxy.Freeze()
				select {
				case <-tick:
				case <-ctx.Done():
					return
				}
			}
		}()
		failed := p.Stderr.Find(`"nightly" is not renewed: trying again`)
		found()
		if !failed || !p.Stderr.Find(`renewed "nightly" again`) {
			p.WantCode(exit.LockLost)
			return false
		}
		p.Stdin.Close()
		code := p.Code()
		if code == exit.LockLost { // the machine stood still for as long as the lease
			return false
		}
		if code != 1 { // the code of read
			t.Errorf("exit code %d; stderr: %s", code, p.Stderr.Rest())
		}
		return true
	})
}

// TestExecBlackHole freezes all connections to the database. It takes seconds: the lease has to end.
func TestExecBlackHole(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	program.WithTTL(t, time.Second, func(ttl time.Duration) (longEnough bool) {
		proxy := newProxy(t)
		p := program.Start(t, proxy.dsn, "exec", "--ttl", ttl.String(), "--grace", "100ms", "nightly", "--", "sh", "-c", "echo inside; exec sleep 1000")
		if !p.Stdout.Find("inside") {
			return false
		}
		proxy.Silence()
		frozen := time.Now()
		p.Stderr.Await(`the lock "nightly" is lost`)
		held := time.Since(frozen)
		p.WantCode(exit.LockLost)
		if held > ttl {
			t.Logf("lost %v after the database was frozen, the time-to-live is %v", held, ttl)
		}
		return held <= ttl
	})
}
