//go:build unix

package main

import (
	"os"
	"syscall"
)

// forwardedSignals are the signals that people and supervisors send to a
// command.
var forwardedSignals = []os.Signal{
	syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// signal sends a signal to the child, or to its group if it has one of its own.
// That a child is gone already is no error: ended tells.
func (c *child) signal(s os.Signal) {
	number, _ := s.(syscall.Signal)
	if c.terminal {
		_ = c.cmd.Process.Signal(number)
		return
	}
	// The number of a group is not given to another while it has members.
	_ = syscall.Kill(-c.cmd.Process.Pid, number)
}

func (c *child) kill() { c.signal(syscall.SIGKILL) }

// leftSomething tells whether the group of a child that has ended has members.
func (c *child) leftSomething() bool {
	return !c.terminal && syscall.Kill(-c.cmd.Process.Pid, 0) == nil
}

// hasFromTerminal tells whether the terminal has sent a signal of this process
// to the child as well.
func (c *child) hasFromTerminal(s os.Signal) bool {
	return c.terminal && (s == syscall.SIGINT || s == syscall.SIGQUIT) && inForeground()
}

// exitCode is the child's, as shells count it.
func (c *child) exitCode() int {
	if status, ok := c.state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return 128 + int(status.Signal())
	}
	return c.state.ExitCode()
}
