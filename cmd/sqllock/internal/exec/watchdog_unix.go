//go:build unix

package exec

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
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
// kills its command. If that process does not keep the limits up to date, because it is stopped, the
// command is ended at these. When it is ready to, it writes a line to stdout.
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
	f := newFamily(root, group)
	if obey(readLimits(stdin), f) {
		return
	}
	awaitEnd(guarded)
	f.kill()
}

// readLimits returns a channel that receives the limits, and is closed at the end of r.
func readLimits(r io.Reader) <-chan limits {
	all := make(chan limits)
	go func() {
		defer close(all)
		for {
			var l limits
			if n, _ := fmt.Fscanln(r, &l.term, &l.kill); n != 2 {
				return
			}
			all <- l
		}
	}()
	return all
}

// obey ends a family at the last limits, until there are no more. It reports whether it has killed
// the family. Limits that come when the family has been told to end are too late.
func obey(all <-chan limits, f *family) (killed bool) {
	var term, kill <-chan time.Time
	told := false
	for {
		select {
		case l, ok := <-all:
			switch {
			case !ok:
				return killed
			case !told:
				term, kill = l.term.reached(), l.kill.reached()
			}
		case <-term:
			told, term = true, nil
			f.terminate()
		case <-kill:
			told, killed, term, kill = true, true, nil, nil
			f.kill()
		}
	}
}

// awaitEnd waits until the parent of this process, whose files are closed already, has
// ended completely. When it ends, the command's group is orphaned; if it had stopped
// members then, the kernel would send it SIGHUP and SIGCONT.
func awaitEnd(parent int) {
	for look := 0; os.Getppid() == parent && look < 10*looks; look++ {
		time.Sleep(pause / 10)
	}
}

// now returns the time of the clock by which Go measures durations.
func now() instant {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // every system has it
	return instant(t.Nano())
}
