package main

import (
	"os"
	"syscall"
)

// terminationSignal ends a process at once: Windows has no way to ask.
var terminationSignal = os.Kill

// passedOn are the signals that the child gets in place of this process.
var passedOn = []os.Signal{os.Interrupt}

// fromTerminal tells whether a signal comes from a key. The console sends it to
// the child by itself.
func fromTerminal(os.Signal) bool { return true }

func statusOf(state *os.ProcessState) int { return state.ExitCode() }

// signalCode is the exit code of a process that was interrupted.
func signalCode(os.Signal) int { return 130 }

func attributes() *syscall.SysProcAttr { return nil }
