package main

import (
	"os"
	"syscall"
)

var forwardedSignals = []os.Signal{os.Interrupt, syscall.SIGTERM}

func childAttributes(bool, bool) *syscall.SysProcAttr { return nil }

func controllingTerminal() bool { return true }

// signal ends the child: Windows has no signals to send. An interrupt comes from
// the console, which has sent it to the child too.
func (c *child) signal(s os.Signal) {
	if s != os.Interrupt {
		c.kill()
	}
}

func (c *child) kill() { _ = c.cmd.Process.Kill() }

func (c *child) leftSomething() bool { return false }

func (c *child) hasFromTerminal(s os.Signal) bool { return s == os.Interrupt }

func (c *child) exitCode() int { return c.state.ExitCode() }
