package exec

import (
	"io"
	"os/exec"
)

// There are no watchdogs: Windows has no process groups to kill.
func watchdogCommand() (*exec.Cmd, error) { return nil, nil }

func isWatchdog() bool { return false }

func runWatchdog(io.Reader, io.Writer) {}
