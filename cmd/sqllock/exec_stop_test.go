//go:build unix

package main

import (
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/dbtest"
)

// stopped reports whether a process is stopped.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	// It fails if the process has ended.
	state, _ := exec.CommandContext(t.Context(), "ps", "-o", "state=", "-p", strconv.Itoa(pid)).Output()
	return strings.HasPrefix(string(state), "T")
}

// stoppedExec is an exec that was stopped with its command.
type stoppedExec struct {
	*program
	repository *sqllock.Repository
	exec       int
	command    int
}

// stopExec starts an exec of the shell script given, and stops it with SIGTSTP. It
// runs as a job does: the kernel discards the SIGTSTP of a process whose group has
// no parent in its session.
func stopExec(t *testing.T, script string, args ...string) stoppedExec {
	t.Helper()
	db := dbtest.SQLite(t)
	s := stoppedExec{repository: migrated(t, db)}
	line := "in-group sqllock exec " + strings.Join(args, " ") + ` nightly -- sh -c "$0"; exit $?`
	s.program = startProgram(t, db.DSN, "sh", "-c", line, "echo inside; echo $PPID; echo $$; "+script)
	s.stdout.await("inside")
	s.exec, s.command = s.stdout.number(), s.stdout.number()
	if err := syscall.Kill(s.exec, syscall.SIGTSTP); err != nil {
		t.Fatal(err)
	}
	eventually(t, "exec is stopped", func() bool { return stopped(t, s.exec) })
	if !stopped(t, s.command) {
		t.Error("the command goes on while exec is stopped")
	}
	return s
}

func (s stoppedExec) resume() {
	s.t.Helper()
	if err := syscall.Kill(s.exec, syscall.SIGCONT); err != nil {
		s.t.Fatal(err)
	}
}

// TestExecStopped stops an exec that has no terminal, and continues it while its
// lease lasts.
func TestExecStopped(t *testing.T) {
	t.Parallel()
	for name, script := range map[string]string{
		"stops":         "read wait; exit 5",
		"is deaf":       "trap '' TSTP; read wait; exit 5",
		"does it later": "trap : TSTP; cat; exit 5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stopExec(t, script, "--ttl", "1h")
			s.resume()
			eventually(t, "the command goes on", func() bool { return !stopped(t, s.command) })
			s.stdin.Close()
			s.wantCode(5)
		})
	}
}

// TestExecStoppedTooLong continues an exec whose lease has ended: its command ends
// without having worked.
func TestExecStoppedTooLong(t *testing.T) {
	t.Parallel()
	s := stopExec(t, "sleep 1000; echo worked", "--ttl", "500ms")
	eventually(t, "the lease has ended", func() bool {
		row, ok, err := s.repository.Peek(t.Context(), "nightly", time.Second)
		return err == nil && (!ok || row.Expired())
	})
	s.resume()
	s.wantCode(exitLockLost)
	if out := s.stdout.rest(); out != "" {
		t.Errorf("output %q", out)
	}
	contains(t, s.stderr.rest(), `the lock "nightly" is lost`, "the command ended with signal: terminated")
}
