package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
)

func attributes(as *account, orphaned syscall.Signal) (*syscall.SysProcAttr, error) {
	a := &syscall.SysProcAttr{Setpgid: true, Pdeathsig: orphaned}
	if as != nil {
		a.Credential = &syscall.Credential{Uid: as.user, Gid: as.group}
	}
	return a, nil
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
		for isAlive(pid) {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d is still there %v after SIGKILL", pid, limit)
			}
			<-look.C
		}
	}
	return nil
}

// isAlive reports whether a process is alive. A zombie is not: it holds no resources any more,
// and it does not matter when init reaps it.
func isAlive(pid int) bool {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	// The command's name is in parentheses and may contain any character.
	_, state, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	return err == nil && ok && len(state) > 0 && state[0] != 'Z' && state[0] != 'X'
}
