package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/sqllock/sqllock/internal/test/proc"
)

// runAs has a command that was not started run as an account, in a process group of its own.
func runAs(cmd *exec.Cmd, as *account) error {
	proc.OwnGroup(cmd)
	if as != nil {
		cmd.SysProcAttr.Credential = &syscall.Credential{Uid: as.user, Gid: as.group}
	}
	return nil
}

// killFamily kills a process and its children. It stops the process first, so that it creates
// no more children meanwhile: a PostgreSQL backend that survives its parent could still
// commit, which would not be a crash.
func killFamily(parent *os.Process) error {
	if err := parent.Signal(syscall.SIGSTOP); err != nil {
		return ignoreDone(err)
	}
	children := childrenOf(parent.Pid)
	err := ignoreDone(parent.Kill())
	for _, child := range children {
		if killed := syscall.Kill(child, syscall.SIGKILL); killed != nil && killed != syscall.ESRCH {
			err = errors.Join(err, fmt.Errorf("kill child %d: %w", child, killed))
		}
	}
	return errors.Join(err, awaitGone(children))
}

func ignoreDone(err error) error {
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// childrenOf returns all descendants of a process.
func childrenOf(pid int) []int {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil // the process has ended, or the kernel has no such file
	}
	var family []int
	for field := range strings.FieldsSeq(string(list)) {
		if child, err := strconv.Atoi(field); err == nil {
			family = append(append(family, child), childrenOf(child)...)
		}
	}
	return family
}

// awaitGone waits for processes that are not children of this process. A server does not start
// again while one of its former processes is attached to its shared memory.
func awaitGone(pids []int) error {
	const limit = time.Minute
	deadline := time.Now().Add(limit)
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for _, pid := range pids {
		for proc.State(pid) != 'Z' { // which holds no resources; it does not matter when init reaps it
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d is still there %v after SIGKILL", pid, limit)
			}
			<-look.C
		}
	}
	return nil
}
