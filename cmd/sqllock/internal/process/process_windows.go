package process

import (
	"os"
	"syscall"
)

// Executable returns the file of this program.
func Executable() (string, error) { return os.Executable() }

// ForwardedSignals are the signals that people and supervisors send to a command.
var ForwardedSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

// HasTerminal returns true: the console sends an interrupt to the child too.
func HasTerminal() bool { return true }

// Signal kills the child: Windows has no signals to send. The console has sent an
// interrupt to the child already.
func (c *Child) Signal(s os.Signal) {
	if s != os.Interrupt {
		c.Kill()
	}
}

// Kill ends the child.
func (c *Child) Kill() { _ = c.Cmd.Process.Kill() }

// GotFromTerminal reports whether the console has sent a signal to the child too.
func (c *Child) GotFromTerminal(s os.Signal) bool { return s == os.Interrupt }

// ExitCode returns the child's exit code.
func (c *Child) ExitCode() int { return c.State.ExitCode() }

// NotifyStops does nothing: Windows does not stop processes.
func NotifyStops(chan<- os.Signal) {}

// IsStop returns false.
func IsStop(os.Signal) bool { return false }

// IsContinue returns false.
func IsContinue(os.Signal) bool { return false }

// Stop does nothing.
func (c *Child) Stop() {}

// Resume does nothing.
func (c *Child) Resume() {}

// StopSelf does nothing.
func StopSelf() {}

func attributes(bool, bool) *syscall.SysProcAttr { return nil }

// CloseInherited does nothing: a process of Windows has none of the files of another unless it is given them.
func CloseInherited() {}
