package main

import (
	"bytes"
	"os"
	"syscall"
)

// childAttributes makes the kernel kill the child when this process dies, be it
// by SIGKILL: a command that nobody renews a lock for must not go on.
func childAttributes(ownGroup bool) *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL, Setpgid: ownGroup}
}

// controllingTerminal tells whether this process belongs to a terminal.
func controllingTerminal() bool {
	_, terminal, _ := terminalState()
	return terminal != "0"
}

// inForeground tells whether the group of this process is the one that the keys
// of its terminal send signals to.
func inForeground() bool {
	group, _, foreground := terminalState()
	return group == foreground
}

// terminalState returns the process group, the controlling terminal ("0": none)
// and the terminal's foreground group, as proc(5) has them.
func terminalState() (group, terminal, foreground string) {
	stat, err := os.ReadFile("/proc/self/stat")
	if err != nil {
		return "", "", ""
	}
	// The command's name stands in parentheses and may contain anything.
	fields := bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
	if len(fields) < 6 {
		return "", "", ""
	}
	return string(fields[2]), string(fields[4]), string(fields[5])
}
