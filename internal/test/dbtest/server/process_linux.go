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

// killFamily kills a process and its children. It is stopped first, so that it
// makes no more children while they are counted: a PostgreSQL backend whose
// parent is gone may still commit what it was doing, which is no crash.
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

// stopFamily stops a process, which then makes no more children, and those that it
// has, and returns when they stand still.
func stopFamily(parent int) error {
	if err := syscall.Kill(parent, syscall.SIGSTOP); err != nil {
		return err
	}
	if err := signalChildren(parent, syscall.SIGSTOP); err != nil {
		return err
	}
	return awaitStopped(append(childrenOf(parent), parent))
}

// awaitStopped waits until no thread of the processes runs any more: each takes the
// signal in its own time, and until then a server may still answer.
func awaitStopped(pids []int) error {
	const limit = 5 * time.Second
	deadline := time.Now().Add(limit)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for _, pid := range pids {
		for moves(pid) {
			if time.Now().After(deadline) {
				return fmt.Errorf("process %d still runs %v after SIGSTOP", pid, limit)
			}
			<-look.C
		}
	}
	return nil
}

// moves tells whether a thread of a process is neither stopped nor gone.
func moves(pid int) bool {
	threads, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid)) // the pattern is good
	return slices.ContainsFunc(threads, func(stat string) bool {
		return !strings.ContainsRune("TtZX", stateIn(stat))
	})
}

// stateIn returns the state that a stat file of /proc tells, X if it has gone.
func stateIn(file string) rune {
	stat, err := os.ReadFile(file)
	// The command's name stands in parentheses and may contain anything.
	_, state, ok := bytes.Cut(stat[bytes.LastIndexByte(stat, ')')+1:], []byte(" "))
	if err != nil || !ok || len(state) == 0 {
		return 'X'
	}
	return rune(state[0])
}

// continueFamily is the opposite of stopFamily.
func continueFamily(parent int) error {
	return errors.Join(signalChildren(parent, syscall.SIGCONT), syscall.Kill(parent, syscall.SIGCONT))
}

func signalChildren(parent int, signal syscall.Signal) (err error) {
	for _, child := range childrenOf(parent) {
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

// childrenOf returns the children of a process, with theirs.
func childrenOf(pid int) []int {
	list, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", pid, pid))
	if err != nil {
		return nil // it is gone, or the kernel keeps no such list
	}
	var family []int
	for field := range strings.FieldsSeq(string(list)) {
		if child, err := strconv.Atoi(field); err == nil {
			family = append(append(family, child), childrenOf(child)...)
		}
	}
	return family
}

// awaitGone waits for processes that are not ours to wait for. A server does
// not start again while one of its former processes is attached to its memory.
func awaitGone(pids []int) error {
	const limit = 10 * time.Second
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

// isAlive takes a zombie for dead: it holds nothing any more, and whether the
// machine's init ever reaps it is not our concern.
func isAlive(pid int) bool {
	state := stateIn(fmt.Sprintf("/proc/%d/stat", pid))
	return state != 'Z' && state != 'X'
}
