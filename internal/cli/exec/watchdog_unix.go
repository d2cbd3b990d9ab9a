//go:build unix

package exec

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
	for limit := time.Now().Add(stopLimit); os.Getppid() == parent && time.Now().Before(limit); {
		time.Sleep(100 * time.Microsecond)
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

const (
	// stopLimit is the time limit for the end of a process: one that waits for a file system that
	// does not answer does not end.
	stopLimit = time.Second
	// looks is how often stopFamily looks in vain for another process, or for one that runs no
	// longer: a process that waits for a file system that does not answer does not stop. Looks and
	// not time, since a machine that stands still for seconds must not let a family go.
	looks = 500
)

// stopFamily stops a family and returns it, parents before their children.
func stopFamily(root, group int, table func() ([]process.Process, error)) []int {
	family := []int{root}
	stop(family)
	// A process may start another child until it is listed as stopped. The first table
	// read after that contains all of them.
	allStopped := false
	for inVain := 0; inVain < looks; inVain++ {
		now, err := table()
		if err != nil {
			continue
		}
		found := relatives(now, family, group)
		if allStopped && len(found) == 0 {
			break
		}
		if len(found) > 0 {
			inVain = 0
		}
		stop(found)
		family = append(family, found...)
		allStopped = areStopped(now, family)
		time.Sleep(time.Millisecond)
	}
	return family
}

func stop(pids []int) {
	for _, pid := range pids {
		_ = syscall.Kill(pid, syscall.SIGSTOP)
	}
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
