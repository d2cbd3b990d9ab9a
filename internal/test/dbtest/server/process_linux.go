package server

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	err = errors.Join(err, signalAll(children, syscall.SIGKILL))
	// A server does not start again while one of its former processes is attached to its shared memory.
	return errors.Join(err, awaitNone(children, isAlive))
}

// stopFamily stops a process and its children, and waits until they are stopped.
func stopFamily(parent int) error {
	if err := syscall.Kill(parent, syscall.SIGSTOP); err != nil {
		return err
	}
	if err := signalAll(childrenOf(parent), syscall.SIGSTOP); err != nil {
		return err
	}
	// Threads receive the signal at different times, and until then a server may still respond.
	return awaitNone(append(childrenOf(parent), parent), isRunning)
}

// isRunning reports whether a thread of a process is neither stopped nor dead.
func isRunning(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is valid
	return slices.ContainsFunc(threads, func(stat string) bool {
		return !strings.ContainsRune("TtZX", stateIn(stat))
	})
}

// stateIn returns the state in a stat file of /proc, or X if there is no such file.
func stateIn(file string) rune {
	stat, err := os.ReadFile(file)
	// The command's name is in parentheses and may contain any character.
	_, state, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	if err != nil || !ok || len(state) == 0 {
		return 'X'
	}
	return rune(state[0])
}

// continueFamily reverses stopFamily.
func continueFamily(parent int) error {
	return errors.Join(signalAll(childrenOf(parent), syscall.SIGCONT), syscall.Kill(parent, syscall.SIGCONT))
}

func signalAll(children []int, signal syscall.Signal) (err error) {
	for _, child := range children {
		if sent := syscall.Kill(child, signal); sent != nil && sent != syscall.ESRCH {
			err = errors.Join(err, fmt.Errorf("signal child %d: %w", child, sent))
		}
	}
	return err
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

// awaitNone waits until a condition holds for none of the processes, which need not be children of
// this process.
func awaitNone(pids []int, holds func(pid int) bool) error {
	const limit = time.Minute
	deadline := time.Now().Add(limit)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for _, pid := range pids {
		for holds(pid) {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d has not ended or stopped %v after the signal", pid, limit)
			}
			<-look.C
		}
	}
	return nil
}

// isAlive reports whether a process is alive. A zombie is not: it holds no resources any more,
// and it does not matter when init reaps it.
func isAlive(pid int) bool {
	state := stateIn(fmt.Sprintf("/proc/%d/stat", pid))
	return state != 'Z' && state != 'X'
}
