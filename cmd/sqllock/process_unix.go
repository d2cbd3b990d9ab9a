//go:build unix

package main

import (
	"os"
	"syscall"
)

// terminationSignal asks a process to end.
const terminationSignal = syscall.SIGTERM

// passedOn are the signals that the child gets in place of this process.
var passedOn = []os.Signal{
	syscall.SIGTERM, syscall.SIGHUP, syscall.SIGINT, syscall.SIGQUIT, syscall.SIGUSR1, syscall.SIGUSR2,
}

// fromTerminal tells whether a signal comes from a key. The terminal sends it to
// the child by itself.
func fromTerminal(s os.Signal) bool {
	return s == syscall.SIGINT || s == syscall.SIGQUIT
}

// statusOf returns the exit code as a shell tells it: 128 and the signal's number
// for a process that a signal ended.
func statusOf(state *os.ProcessState) int {
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return signalCode(status.Signal())
	}
	return state.ExitCode()
}

// signalCode is the exit code of a process that a signal ended.
func signalCode(s os.Signal) int {
	number, _ := s.(syscall.Signal)
	return 128 + int(number)
}
