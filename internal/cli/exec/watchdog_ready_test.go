//go:build unix

package exec

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/cli/process"
	"github.com/sqllock/sqllock/internal/test/program"
)

// neverReady is a watchdog that does not answer.
func neverReady(t *testing.T) *watchdog {
	t.Helper()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	cmd := exec.CommandContext(t.Context(), "cat")
	cmd.Stdin = read
	if err := process.StartOwn(cmd); err != nil {
		t.Fatal(err)
	}
	w := &watchdog{cmd: cmd, pipe: write, ready: make(chan struct{}), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		_ = process.WaitOwn(cmd)
	}()
	return w
}

// startedUnder starts a command under a watchdog, and returns a function that waits
// for its end and returns its output.
func startedUnder(lease context.Context, t *testing.T, w *watchdog, script string) (output func() string, err error) {
	t.Helper()
	stdout, write := program.NewStream(t)
	defer write.Close()
	x := &execution{stderr: io.Discard}
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Fatal(err)
	}
	c, dismiss, err := x.startGuarded(lease, &exec.Cmd{Path: sh, Args: []string{"sh", "-c", script}, Stdout: write}, w, false)
	return func() string {
		if c != nil {
			<-c.Ended
			dismiss()
		}
		write.Close()
		return stdout.Rest()
	}, err
}

// TestWatchdogNotReady has no watchdog get ready while the lease lasts: the command
// does not run.
func TestWatchdogNotReady(t *testing.T) {
	t.Parallel()
	lease, lose := context.WithCancelCause(t.Context())
	lose(sqllock.ErrLockLost)
	output, err := startedUnder(lease, t, neverReady(t), "echo inside")
	if !errors.Is(err, sqllock.ErrLockLost) {
		t.Errorf("error %v, want ErrLockLost", err)
	}
	if out := output(); out != "" {
		t.Errorf("output %q of a command that no watchdog guards", out)
	}
}

// TestWatchdogKilledBeforeReady kills a watchdog before it is ready, as SIGTERM can:
// the command runs under the next. It counts the watchdogs of this process, so no
// other test may have one meanwhile.
func TestWatchdogKilledBeforeReady(t *testing.T) {
	w := neverReady(t)
	if err := w.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	output, err := startedUnder(t.Context(), t, w, `ps -A -o ppid= -o args= | grep -c "^ *$PPID exec-watchdog"`)
	if err != nil {
		t.Fatal(err)
	}
	if out := output(); out != "1" {
		t.Errorf("the command has run under %q watchdogs, want 1", out)
	}
}

// TestWatchdogWithoutReader has the watched process end before the watchdog answers:
// it kills the command all the same.
func TestWatchdogWithoutReader(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), "sleep", "1000")
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	w, err := watchdogCommand()
	if err != nil {
		t.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	read.Close()
	pid := command.Process.Pid
	w.Stdin, w.Stdout = strings.NewReader(fmt.Sprintf("%d %d %d\n", 0, pid, pid)), write
	if err := w.Run(); err != nil {
		t.Errorf("the watchdog: %v", err)
	}
	write.Close()
	// They end a command that was not killed, which could be stopped.
	_ = syscall.Kill(-pid, syscall.SIGTERM)
	_ = syscall.Kill(-pid, syscall.SIGCONT)
	_ = command.Wait()
	if status, _ := command.ProcessState.Sys().(syscall.WaitStatus); status.Signal() != syscall.SIGKILL {
		t.Errorf("the command ended with %v", command.ProcessState)
	}
}
