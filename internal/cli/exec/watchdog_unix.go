//go:build unix

package exec

import (
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/sqllock/sqllock/internal/cli/process"
)

// watchdogCommand returns the command that runs this program as a watchdog. The
// watchdog keeps no file, variable or directory of this process.
func watchdogCommand() (*exec.Cmd, error) {
	program, err := process.Executable()
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

// runWatchdog waits until the process that has started this one has ended, and then
// kills its command. When it is ready to, it writes a line to stdout.
func runWatchdog(stdin io.Reader, stdout io.Writer) {
	// Ignore all signals. Supervisors send SIGTERM to all processes that they have
	// started; SIGPIPE would end the watchdog if the other process ends before the
	// watchdog answers.
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

// awaitEnd waits until the parent of this process, whose files are closed already, has
// ended completely. When it ends, the command's group is orphaned; if it had stopped
// members then, the kernel would send it SIGHUP and SIGCONT.
func awaitEnd(parent int) {
	for look := 0; os.Getppid() == parent && look < 10*looks; look++ {
		time.Sleep(pause / 10)
	}
}

// killFamily kills a process, its descendants, and the members of its group with
// theirs. group is 0 if other processes belong to it too.
//
// All of them are stopped first, so that none can start another or react to the end of
// another. Descendants are killed before their parents: the kernel may continue a
// stopped process when its parent ends.
func killFamily(root, group int) {
	if group != 0 {
		_ = syscall.Kill(-group, syscall.SIGSTOP)
		defer func() { _ = syscall.Kill(-group, syscall.SIGKILL) }()
	}
	for _, pid := range slices.Backward(stopFamily(root, group, process.Table)) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
}

// Looks, and not time, limit the wait for processes: a machine that stands still for seconds must not
// let a family go.
const (
	pause = time.Millisecond
	// looks is how often the watchdog looks in vain: a process that waits for a file system that does
	// not answer neither stops nor ends.
	looks = 500
	// mostLooks limits all looks for a family that grows all the time.
	mostLooks = 10 * looks
)

// stopFamily stops a family and returns it, parents before their children. Processes of other users,
// which cannot be stopped, are not in it.
func stopFamily(root, group int, table func() ([]process.Process, error)) []int {
	family, others := stop([]int{root})
	// A process may start another child until it is listed as stopped. The first table
	// read after that contains all of them.
	allStopped := false
	for all, inVain := 0, 0; all < mostLooks && inVain < looks; all, inVain = all+1, inVain+1 {
		time.Sleep(pause)
		now, err := table()
		if err != nil {
			continue
		}
		found := relatives(now, slices.Concat(family, others), group)
		if allStopped && len(found) == 0 {
			break
		}
		ours, theirs := stop(found)
		if len(ours) > 0 {
			inVain = 0
		}
		family, others = append(family, ours...), append(others, theirs...)
		allStopped = areStopped(now, family)
	}
	return family
}

// stop stops processes, and returns which were told so and which this user may not stop.
func stop(pids []int) (stopped, others []int) {
	for _, pid := range pids {
		switch err := syscall.Kill(pid, syscall.SIGSTOP); {
		case err == nil:
			stopped = append(stopped, pid)
		case errors.Is(err, syscall.EPERM):
			others = append(others, pid)
		}
	}
	return stopped, others
}

// relatives returns the children of a family and the members of its group that are not
// in the family yet.
func relatives(table []process.Process, family []int, group int) (found []int) {
	for _, p := range table {
		related := slices.Contains(family, p.Parent) || group != 0 && p.Group == group
		if related && !slices.Contains(family, p.PID) {
			found = append(found, p.PID)
		}
	}
	return found
}

// areStopped reports whether no process of a family was running.
func areStopped(table []process.Process, family []int) bool {
	return !slices.ContainsFunc(table, func(p process.Process) bool {
		return slices.Contains(family, p.PID) && !p.Stopped && !p.Zombie
	})
}
