//go:build unix && !linux

package process

import (
	"os"

	"golang.org/x/term"
)

// HasTerminal reports whether a standard file of this process is a terminal.
func HasTerminal() bool {
	for _, f := range []*os.File{os.Stdin, os.Stdout, os.Stderr} {
		if term.IsTerminal(int(f.Fd())) {
			return true
		}
	}
	return false
}

// isInForeground assumes that a process with a terminal is in the foreground: in the
// background the keys send it no signals.
func isInForeground() bool { return true }
