//go:build unix

package exec

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/cli/exit"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
)

// TestExecExcludes runs a command that fails if it runs twice at the same time.
func TestExecExcludes(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		migrated(t, db)
		room := filepath.Join(t.TempDir(), "room")
		var programs []*program.Program
		for range 4 {
			programs = append(programs, program.Start(t, db.DSN, "exec", "nightly", "--", "sh", "-c", `mkdir "$0" && sleep 0.05 && rmdir "$0"`, room))
		}
		for _, p := range programs {
			p.WantCode(0)
		}
	})
}

// TestExecKilled kills an exec with SIGKILL. Its command ends with it, and the next exec
// acquires the lock when the lease has expired, not before.
func TestExecKilled(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		r := migrated(t, db)
		first := program.Start(t, db.DSN, "exec", "--ttl", "2s", "nightly", "--", "sh", "-c", "echo inside; exec sleep 1000")
		first.Stdout.Await("inside")
		second := program.Start(t, db.DSN, "exec", "-v", "--ttl", "2s", "nightly", "--", "true")
		second.Stderr.Await("waiting for")

		read := time.Now()
		row, ok, err := r.Peek(t.Context(), "nightly")
		if err != nil || !ok {
			t.Fatal(row, ok, err)
		}
		first.Signal(syscall.SIGKILL)
		first.Stdout.Rest() // ends when the command has
		if gone := time.Since(read); gone > row.Left {
			t.Errorf("the command ran %v after the kill, the lease only %v", gone, row.Left)
		}
		second.Stderr.Await("acquired")
		if waited := time.Since(read); waited < row.Left-clockPrecision {
			t.Errorf("the second acquired the lock after %v, the lease had %v left", waited, row.Left)
		}
		second.WantCode(0)
	})
}

// stubborn is a command that writes "asked" on SIGTERM and does not end.
var stubborn = []string{"sh", "-c", `trap 'echo asked' TERM; echo inside; while :; do sleep 1000; done`}

// TestExecLosesLock deletes the row of the lock while the command runs.
func TestExecLosesLock(t *testing.T) {
	t.Parallel()
	const grace = 300 * time.Millisecond
	db := dbtest.SQLite(t)
	migrated(t, db)
	p := program.Start(t, db.DSN, append([]string{"exec", "--ttl", "1s", "--grace", grace.String(), "nightly", "--"}, stubborn...)...)
	p.Stdout.Await("inside")
	db.DB.MustExecContext(t.Context(), "DELETE FROM INT_LOCK")
	p.Stdout.Await("asked")
	asked := time.Now()
	p.WantCode(exit.LockLost)
	if killed := time.Since(asked); killed < grace-100*time.Millisecond {
		t.Errorf("killed %v after it was asked, want %v", killed, grace)
	}
	program.Contains(t, p.Stderr.Rest(), `the lock "nightly" is lost`, "the command ended with signal: killed")
	p.Stdout.Rest() // it ends when all processes of the command's group have ended
}

func TestExecForwardsSignals(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	r := migrated(t, db)
	p := program.Start(t, db.DSN, "exec", "nightly", "--", "sh", "-c",
		// The shell runs its traps at once, because sleep is in the background.
		`for s in INT HUP QUIT USR1 USR2; do trap "echo got $s" $s; done; trap 'exit 5' TERM; echo inside; while :; do sleep 60 & wait; done`)
	p.Stdout.Await("inside")
	for signal, name := range map[syscall.Signal]string{
		syscall.SIGINT: "INT", syscall.SIGHUP: "HUP", syscall.SIGQUIT: "QUIT", syscall.SIGUSR1: "USR1", syscall.SIGUSR2: "USR2",
	} {
		p.Signal(signal)
		p.Stdout.Await("got " + name)
	}
	p.Signal(syscall.SIGTERM)
	p.WantCode(5)
	if _, ok, err := r.Peek(t.Context(), "nightly"); ok || err != nil {
		t.Errorf("the lock was not released: %v, %v", ok, err)
	}
}

// TestExecSignalledWhileWaiting ends the wait by signals. The holder keeps the lock.
func TestExecSignalledWhileWaiting(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	r := migrated(t, db)
	holder := r.NewHolder()
	if got, err := r.Acquire(t.Context(), "nightly", holder, time.Hour); err != nil || !got.Acquired {
		t.Fatal(got, err)
	}
	for _, signal := range []syscall.Signal{syscall.SIGTERM, syscall.SIGINT, syscall.SIGUSR1} {
		p := program.Start(t, db.DSN, "exec", "-v", "nightly", "--", "echo", "never")
		p.Stderr.Await(`waiting for "nightly": held by ` + holder)
		p.Signal(signal)
		p.WantCode(128 + int(signal))
		if out := p.Stdout.Rest(); out != "" {
			t.Errorf("stdout %q", out)
		}
	}
	row, _, err := r.Peek(t.Context(), "nightly")
	if err != nil || row.Holder != holder {
		t.Errorf("row %+v, %v", row, err)
	}
}

// TestExecDeadConnection freezes a connection, as a failover does. The lease is renewed over
// another.
func TestExecDeadConnection(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t)
	// The second attempt must succeed within a quarter of the time-to-live, on a busy machine too.
	p := program.Start(t, proxy.dsn, "exec", "--ttl", "12s", "nightly", "--", "sh", "-c", "echo inside; read wait")
	p.Stdout.Await("inside")
	proxy.freeze()
	p.Stderr.Await(`renew "nightly": `)
	p.Stderr.Await(`renewed "nightly" again`)
	p.Stdin.Close()
	p.WantCode(1) // the code of read
}

// TestExecBlackHole freezes all connections to the database.
func TestExecBlackHole(t *testing.T) {
	t.Parallel()
	const ttl = 2 * time.Second
	proxy := newProxy(t)
	p := program.Start(t, proxy.dsn, "exec", "--ttl", ttl.String(), "--grace", "100ms", "nightly", "--", "sh", "-c", "echo inside; exec sleep 1000")
	p.Stdout.Await("inside")
	proxy.swallow()
	frozen := time.Now()
	p.Stderr.Await(`the lock "nightly" is lost`)
	if held := time.Since(frozen); held > ttl {
		t.Errorf("lost %v after the database was frozen, the time-to-live is %v", held, ttl)
	}
	p.WantCode(exit.LockLost)
}

// TestExecWaitInBlackHole ends a wait by a signal while the database does not answer.
func TestExecWaitInBlackHole(t *testing.T) {
	t.Parallel()
	proxy := newProxy(t)
	holder := proxy.repository.NewHolder()
	if got, err := proxy.repository.Acquire(t.Context(), "nightly", holder, time.Hour); err != nil || !got.Acquired {
		t.Fatal(got, err)
	}
	p := program.Start(t, proxy.dsn, "exec", "-v", "nightly", "--", "true")
	p.Stderr.Await("waiting for")
	proxy.swallow()
	p.Signal(syscall.SIGTERM)
	p.WantCode(128 + int(syscall.SIGTERM))
}

func TestClientID(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	migrated(t, db)
	id := clientID()
	if _, err := sqllock.NewRepository(t.Context(), db.DB, db.Dialect, &sqllock.RepositoryOptions{ClientID: id}); err != nil || !strings.Contains(id, ":") {
		t.Errorf("client id %q: %v", id, err)
	}
}
