package main

import (
	"bytes"
	"os"
	"syscall"
)

// childAttributes can make the kernel kill the child when this process dies, be it
// by SIGKILL.
func childAttributes(ownGroup, tied bool) *syscall.SysProcAttr {
	attributes := &syscall.SysProcAttr{Setpgid: ownGroup}
	if tied {
		attributes.Pdeathsig = syscall.SIGKILL
	}
	return attributes
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
	fields := statFields(stat)
	if len(fields) < 6 {
		return "", "", ""
	}
	return string(fields[2]), string(fields[4]), string(fields[5])
}

// statFields returns the fields of a stat file of proc(5) from the third on, the
// state. The second is the command's name, which may contain anything.
func statFields(stat []byte) [][]byte {
	return bytes.Fields(stat[bytes.LastIndexByte(stat, ')')+1:])
}
