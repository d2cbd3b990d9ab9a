//go:build unix

package process

import (
	"os"
	"syscall"
)

// ForwardedSignals are the signals that people and supervisors send to a command.
var ForwardedSignals = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// Signal sends a signal to the child, or to its group if it has its own. Errors are
// ignored: a child that has ended closes Ended.
func (c *Child) Signal(s os.Signal) {
	number, _ := s.(syscall.Signal)
	if c.SharesTerminal {
		_ = c.Cmd.Process.Signal(number)
		return
	}
	// The system does not reuse the number of a group that has members.
	_ = syscall.Kill(-c.Cmd.Process.Pid, number)
}

// Kill sends SIGKILL.
func (c *Child) Kill() { c.Signal(syscall.SIGKILL) }

// GotFromTerminal reports whether the terminal has sent a signal of this process to
// the child too.
func (c *Child) GotFromTerminal(s os.Signal) bool {
	return c.SharesTerminal && (s == syscall.SIGINT || s == syscall.SIGQUIT) && isInForeground()
}

// ExitCode returns the child's exit code, or 128+n after signal n, as in a shell.
func (c *Child) ExitCode() int {
	if status, ok := c.State.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return c.State.ExitCode()
}
