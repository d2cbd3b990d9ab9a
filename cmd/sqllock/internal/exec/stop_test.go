//go:build unix

package exec

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/program"
)

// stopped reports whether a process is stopped.
func stopped(t *testing.T, pid int) bool {
	t.Helper()
	return slices.ContainsFunc(processes(t), func(p process.Process) bool { return p.PID == pid && p.Stopped })
}

func processes(t *testing.T) []process.Process {
	t.Helper()
	return check.Value(process.Table())(t)
}

// A stoppedExec is an exec that was stopped with its command.
type stoppedExec struct {
	*program.Program
	t          *testing.T
	repository *sqllock.Repository
	exec       int
	command    int
}

// tryStopExec starts an exec of a shell script, and stops it with SIGTSTP. The script writes "inside" when it waits:
// a shell that is starting a process when it is stopped does not count as stopped while that process, which is
// stopped too, has not begun. exec runs as a job does: the kernel discards SIGTSTP for an orphaned process group. It
// reports whether exec was stopped before the lease ended. If not, exec has ended or is about to end.
func tryStopExec(t *testing.T, script string, args ...string) (s stoppedExec, ok bool) {
	t.Helper()
	db := dbtest.SQLite(t)
	s.t, s.repository = t, migrated(t, db)
	line := "in-group sqllock exec " + strings.Join(args, " ") + ` nightly -- sh -c "$0"; exit $?`
	s.Program = program.StartAs(t, db.DSN, "sh", "-c", line, "echo $PPID; echo $$; "+script)
	if !s.numbers() || !s.Stdout.Find("inside") {
		return s, false
	}
	_ = syscall.Kill(s.exec, syscall.SIGTSTP) // it fails if exec has ended
	eventually(t, "exec is stopped or has ended", func() bool { return stopped(t, s.exec) || gone(s.exec) })
	if gone(s.exec) {
		return s, false
	}
	eventually(t, "the command is stopped or has ended", func() bool { return stopped(t, s.command) || ended(t, s.command) })
	if ended(t, s.command) { // the lease had ended: exec has been stopped on its way out, or its watchdog was faster
		s.resume()
		return s, false
	}
	return s, true
}

// numbers reads the process IDs. It returns false if the command has ended before it wrote them.
func (s *stoppedExec) numbers() bool {
	s.t.Helper()
	for _, number := range []*int{&s.exec, &s.command} {
		if !s.Stdout.Lines.Scan() {
			return false
		}
		n := check.Value(strconv.Atoi(s.Stdout.Lines.Text()))(s.t)
		*number = n
	}
	return true
}

func (s stoppedExec) resume() {
	s.t.Helper()
	check.Must(s.t, syscall.Kill(s.exec, syscall.SIGCONT))
}

// TestExecStopped stops an exec that has no terminal, and continues it while its lease lasts. It starts several
// processes, which takes seconds.
func TestExecStopped(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	for name, script := range map[string]string{
		"stops":        "echo inside; read wait; exit 5",
		"ignores TSTP": "trap '' TSTP; echo inside; read wait; exit 5",
		"handles TSTP": "trap : TSTP; sh -c 'echo inside; exec cat'; exit 5",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, ok := tryStopExec(t, script, "--ttl", "1h")
			if !ok {
				t.Fatalf("exec has ended: %s", s.Stderr.Rest())
			}
			s.resume()
			eventually(t, "the command goes on", func() bool { return !stopped(t, s.command) })
			s.Stdin.Close()
			s.WantCode(5)
		})
	}
}

// TestExecStoppedTooLong continues an exec whose lease has ended. Its command ends before it can work, although what
// it has waited for has happened. It waits until the lease has ended, and tries again on a slow machine, so it can
// take seconds.
func TestExecStoppedTooLong(t *testing.T) {
	program.Slow(t)
	t.Parallel()
	program.WithTTL(t, time.Second, func(ttl time.Duration) (longEnough bool) {
		s, ok := tryStopExec(t, "echo inside; read wait; echo worked", "--grace", "1h", "--ttl", ttl.String())
		if !ok {
			return false
		}
		s.Stdin.Close()
		eventually(t, "the lease has ended", func() bool {
			row, ok, err := s.repository.Peek(t.Context(), "nightly")
			return err == nil && (!ok || row.Expired())
		})
		s.resume()
		s.WantCode(exit.LockLost)
		check.Equal(t, "output", s.Stdout.Rest(), "")
		// The watchdog may have ended the command before exec, too, finds that the lease is over.
		program.Contains(t, s.Stderr.Rest(), `the lock "nightly" was lost while the command ran`, `; the command ended with signal: terminated`)
		return true
	})
}

// A scriptedContext is the context of a lease whose Done calls next. attend calls Done before each of its selects.
type scriptedContext struct {
	context.Context
	next func()
}

func (c *scriptedContext) Done() <-chan struct{} {
	c.next()
	return c.Context.Done()
}

// TestExecContinuedBeforeStop delivers SIGCONT when the delay before the stop has passed, so that select can choose
// either. exec does not stop.
func TestExecContinuedBeforeStop(t *testing.T) {
	t.Parallel()
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	stdin := check.Value(cmd.StdinPipe())(t)
	defer stdin.Close()
	check.Must(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	for range 64 { // select chooses each with the same probability
		synctest.Test(t, func(t *testing.T) {
			c := &process.Child{Cmd: cmd, Ended: make(chan struct{})}
			signals := make(chan os.Signal, 16)
			x := &execution{suspend: func() { t.Error("exec has stopped after SIGCONT") }}
			steps := []func(){
				func() { signals <- syscall.SIGTSTP },
				func() {
					time.Sleep(stopDelay)
					signals <- syscall.SIGCONT
				},
			}
			x.attend(&scriptedContext{t.Context(), func() {
				switch {
				case len(steps) > 0:
					steps[0]()
					steps = steps[1:]
				case len(signals) == 0:
					close(c.Ended)
				}
			}}, c, nil, signals)
		})
	}
}
