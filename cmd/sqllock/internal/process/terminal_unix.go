//go:build unix

package process

import (
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// HasTerminal reports whether this process has a controlling terminal.
func HasTerminal() bool {
	_, ok := foregroundGroup()
	return ok
}

// isInForeground reports whether the keys of the terminal send signals to the process
// group of this process.
func isInForeground() bool {
	group, _ := foregroundGroup()
	return group == syscall.Getpgrp()
}

// foregroundGroup returns the process group to which the keys of the controlling terminal send
// signals, and reports whether there is such a terminal.
func foregroundGroup() (group int, ok bool) {
	terminal, err := os.Open("/dev/tty")
	if err != nil {
		return 0, false
	}
	defer func() { _ = terminal.Close() }()
	group, _ = unix.IoctlGetInt(int(terminal.Fd()), unix.TIOCGPGRP) // it cannot fail for one's own terminal
	return group, true
}
