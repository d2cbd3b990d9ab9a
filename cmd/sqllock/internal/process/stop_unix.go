//go:build unix

package process

import (
	"os"
	"os/signal"
	"syscall"
)

// NotifyStops delivers SIGTSTP and SIGCONT, also if this process was started to ignore SIGTSTP: Go does not note that.
func NotifyStops(signals chan<- os.Signal) { signal.Notify(signals, syscall.SIGTSTP, syscall.SIGCONT) }

// IsStop reports whether a signal asks to stop.
func IsStop(s os.Signal) bool { return s == syscall.SIGTSTP }

// IsContinue reports whether a signal asks to continue.
func IsContinue(s os.Signal) bool { return s == syscall.SIGCONT }

// Stop stops the child's group, whatever its members do on SIGTSTP.
func (c *Child) Stop() { c.Signal(syscall.SIGSTOP) }

// Resume continues the child's group.
func (c *Child) Resume() { c.Signal(syscall.SIGCONT) }

// StopSelf stops this process, and returns when it has been continued.
func StopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
