//go:build unix

package main

import (
	"os"
	"os/signal"
	"syscall"
)

// notifyStops delivers SIGTSTP and SIGCONT, unless SIGTSTP is to be ignored.
func notifyStops(signals chan<- os.Signal) {
	if !signal.Ignored(syscall.SIGTSTP) {
		signal.Notify(signals, syscall.SIGTSTP, syscall.SIGCONT)
	}
}

func isStop(s os.Signal) bool { return s == syscall.SIGTSTP }

func isContinue(s os.Signal) bool { return s == syscall.SIGCONT }

// stop stops the child's group, whatever it does with SIGTSTP.
func (c *child) stop() { c.signal(syscall.SIGSTOP) }

func (c *child) resume() { c.signal(syscall.SIGCONT) }

// stopSelf stops this process, and returns when it has been continued.
func stopSelf() { _ = syscall.Kill(os.Getpid(), syscall.SIGSTOP) }
