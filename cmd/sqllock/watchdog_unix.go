//go:build unix

package main

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"
)

// watchdogCommand is this program as a watchdog. No descriptor, variable or
// directory of this process is kept by it.
func watchdogCommand() (*exec.Cmd, error) {
	program, err := thisProgram()
	if err != nil {
		return nil, err
	}
	return &exec.Cmd{
		Path: program, Args: []string{watchdogName}, Env: []string{}, Dir: "/",
		SysProcAttr: &syscall.SysProcAttr{Setsid: true},
	}, nil
}

// isWatchdog reports whether this process was started as a watchdog.
func isWatchdog() bool { return filepath.Base(os.Args[0]) == watchdogName }

// beWatchdog waits for the end of the process that has started this one, and
// kills its command. It says on stdout when it is ready to.
func beWatchdog(stdin io.Reader, stdout io.Writer) {
	// All: supervisors send SIGTERM to everything that they have started, and SIGPIPE
	// would end it if the other process has ended before the answer.
	signal.Ignore()
	var guarded, root, group int
	if n, _ := fmt.Fscanln(stdin, &guarded, &root, &group); n != 3 {
		return // the command was not started
	}
	_, _ = fmt.Fprintln(stdout, "ready")
	_, _ = io.Copy(io.Discard, stdin)
	awaitEnd(guarded)
	killFamily(root, group)
}

// awaitEnd waits until the parent of this process, whose files are closed already,
// has ended completely. With it the parent of the command's group ends, and if
// that has stopped members then, the kernel sends SIGHUP and SIGCONT to it.
func awaitEnd(parent int) {
	for limit := time.Now().Add(stopLimit); os.Getppid() == parent && time.Now().Before(limit); {
		time.Sleep(100 * time.Microsecond)
	}
}

// killFamily kills a process, its descendants, and the members of its group with
// theirs. group is 0 if other processes belong to it too.
//
// All of them are stopped first, so that none can start another or take note of
// the end of another. The youngest are killed first: a stopped process may be
// continued by the kernel when its parent ends.
func killFamily(root, group int) {
	if group != 0 {
		_ = syscall.Kill(-group, syscall.SIGSTOP)
		defer func() { _ = syscall.Kill(-group, syscall.SIGKILL) }()
	}
	for _, pid := range slices.Backward(stopFamily(root, group)) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// stopLimit bounds the time in which a family is stopped: a process that waits for
// a file system that does not answer does not stop.
const stopLimit = time.Second

// stopFamily stops a family and returns it, parents before their children.
func stopFamily(root, group int) []int {
	family := []int{root}
	stop(family)
	// A process may have another child until it is seen stopped. The first table
	// that is read after that has them all.
	for quiet, limit := false, time.Now().Add(stopLimit); time.Now().Before(limit); {
		table, err := processes()
		found := relatives(table, family, group)
		if err != nil || quiet && len(found) == 0 {
			break
		}
		stop(found)
		family = append(family, found...)
		quiet = areStopped(table, family)
	}
	return family
}

func stop(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
}

// relatives are the children of a family and the members of its group that do not
// belong to it yet.
func relatives(table []process, family []int, group int) (found []int) {
	for _, p := range table {
		related := slices.Contains(family, p.parent) || group != 0 && p.group == group
		if related && !slices.Contains(family, p.pid) {
			found = append(found, p.pid)
		}
	}
	return found
}

// areStopped reports whether none of a family was running.
func areStopped(table []process, family []int) bool {
	return !slices.ContainsFunc(table, func(p process) bool {
		return slices.Contains(family, p.pid) && !p.stopped && !p.zombie
	})
}
