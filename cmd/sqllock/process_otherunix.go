//go:build unix && !linux

package main

import (
	"os"
	"syscall"

	"golang.org/x/term"
)

// childAttributes cannot tie the child's life to that of this process: systems
// other than Linux do not offer it.
func childAttributes(ownGroup, _ bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: ownGroup}
}

// controllingTerminal tells whether this process seems to belong to a terminal.
func controllingTerminal() bool {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if term.IsTerminal(int(f.Fd())) {
			return true
		}
	}
	return false
}

// inForeground takes a process with a terminal to be in the foreground: in the
// background the keys send it nothing.
func inForeground() bool { return true }
