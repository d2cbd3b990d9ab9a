package proc

import (
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// OwnGroup gives a command that was not started a process group of its own, so that a Ctrl-C is for this process alone.
func OwnGroup(cmd *exec.Cmd) { attributes(cmd).Setpgid = true }

func endWithParent(cmd *exec.Cmd, signal syscall.Signal) { attributes(cmd).Pdeathsig = signal }

func attributes(cmd *exec.Cmd) *syscall.SysProcAttr {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	return cmd.SysProcAttr
}

// Status returns the name of a process, and the fields of its stat file that follow: its state, its parent. One that has
// ended has the state Z, as a zombie has.
func Status(pid int) (name string, fields []string) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The name is in parentheses and may contain any character.
	begin, end := strings.IndexByte(string(text), '('), strings.LastIndexByte(string(text), ')')
	if err != nil || end < 0 {
		return "", []string{"Z", "0"}
	}
	return string(text[begin+1 : end]), strings.Fields(string(text[end+1:]))
}

// State returns the kernel's letter for the state of a process.
func State(pid int) byte {
	_, fields := Status(pid)
	return fields[0][0]
}

// Now returns the nanoseconds of the machine's monotonic clock, which is one for all processes and which nothing sets.
func Now() int64 {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it cannot fail
	return t.Nano()
}
