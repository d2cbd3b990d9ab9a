//go:build unix

package exec

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/program"
)

// neverReady is a watchdog that does not answer.
func neverReady(t *testing.T) *watchdog {
	t.Helper()
	read, write, err := os.Pipe()
	check.Must(t, err)
	defer read.Close()
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.Stdin = read
	check.Must(t, process.StartOwn(cmd))
	w := newWatchdog(cmd, write)
	go func() {
		defer close(w.ended)
		_ = process.WaitOwn(cmd)
	}()
	return w
}

// A longLease is a lease that lasts as long as its context.
type longLease struct{ context context.Context }

func (l longLease) Context() context.Context { return l.context }
func (longLease) Deadline() time.Time        { return time.Now().Add(time.Hour) }

// startedUnder starts a command under a watchdog. output waits for the end of the command and returns what it has
// written.
func startedUnder(lease context.Context, t *testing.T, w *watchdog, text string) (output func() string, err error) {
	t.Helper()
	stdout, write := program.NewStream(t)
	defer write.Close()
	x := &execution{stderr: io.Discard}
	cmd := script(t, text)
	cmd.Stdout = write
	c, keeper, err := x.startWatched(longLease{lease}, cmd, w, false) //nolint:contextcheck // the lease has the context
	return func() string {
		if c != nil {
			<-c.Ended
			keeper.dismiss()
		}
		write.Close()
		return stdout.Rest()
	}, err
}

// TestWatchdogNotReady loses the lease before a watchdog is ready. The command does not run.
func TestWatchdogNotReady(t *testing.T) {
	t.Parallel()
	lease, lose := context.WithCancelCause(t.Context())
	lose(sqllock.ErrLockLost)
	output, err := startedUnder(lease, t, neverReady(t), "echo inside")
	check.Is(t, err, sqllock.ErrLockLost)
	check.Equal(t, "output of a command without a watchdog", output(), "")
}

// countWatchdogs is a script that prints how many watchdogs the process has that started it. Debian without the
// package procps has no ps.
const countWatchdogs = `if command -v ps >/dev/null; then
	ps -A -o ppid= -o args=
else
	for process in /proc/[0-9]*; do
		echo $(sed -n "s/^PPid://p" $process/status) $(tr "\\000" " " <$process/cmdline)
	done 2>/dev/null
fi | grep -c "^ *$PPID exec-watchdog"`

// TestWatchdogKilledBeforeReady kills a watchdog before it is ready, as SIGTERM can. The command runs under the next.
// The test counts the watchdogs of this process, so it does not run in parallel with others.
func TestWatchdogKilledBeforeReady(t *testing.T) {
	w := neverReady(t)
	check.Must(t, w.cmd.Process.Kill())
	output := check.Value(startedUnder(t.Context(), t, w, countWatchdogs))(t)
	check.Equal(t, "watchdogs of the command", output(), "1")
}

// TestWatchdogWithoutReader ends the process that started the watchdog before the watchdog answers. The watchdog
// kills the command.
func TestWatchdogWithoutReader(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "sleep", "1000")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	check.Must(t, command.Start())
	w := check.Value(watchdogCommand())(t)
	read, write, err := os.Pipe()
	check.Must(t, err)
	read.Close()
	pid := command.Process.Pid
	w.Env = os.Environ() // see program.Main
	w.Stdin, w.Stdout = strings.NewReader(fmt.Sprintf("%d %d %d\n", 0, pid, pid)), write
	if err := w.Run(); err != nil {
		t.Errorf("the watchdog: %v", err)
	}
	write.Close()
	// End a command that was not killed; it may be stopped.
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	_ = syscall.Kill(-pid, syscall.SIGCONT)
	_ = command.Wait()
	if status, _ := command.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("the command ended with %v", command.ProcessState)
	}
}
