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
// command is ended at these. It writes a line to stdout when it is ready to, and another before it ends
// the command at a limit.
func runWatchdog(stdin *os.File, stdout io.Writer) {
	ignoreSignals()
	process.CloseInherited()
	var guarded, root, group int
	if n, _ := fmt.Fscanln(stdin, &guarded, &root, &group); n != 3 {
		return // the command was not started
	}
	_, _ = fmt.Fprintln(stdout, "ready")
	f := newFamily(root, group)
	if obey(stdin, f, func() { _, _ = fmt.Fprintln(stdout, "acted") }) {
		return
	}
	awaitEnd(guarded)
	f.kill()
}

// ignoreSignals ignores all signals. Supervisors send SIGTERM to all processes that they have started; SIGPIPE would end the
// watchdog if the other process ends before the watchdog answers. A process that ignores SIGCHLD cannot wait for one that it
// starts, as ps where there is no /proc.
func ignoreSignals() {
	signal.Ignore()
	signal.Notify(make(chan os.Signal, 1), syscall.SIGCHLD)
}

// obey ends a family at the last limits, until there are no more, and calls acts before. It reports
// whether it has killed the family. It decides only when all limits that have come are read: those
// that come later are too late.
func obey(stdin *os.File, f *family, acts func()) (killed bool) {
	last, told := limits{never, never}, false
	for {
		next := min(last.term, last.kill)
		switch {
		case awaitInput(stdin, next):
			var l limits
			if n, _ := fmt.Fscanln(stdin, &l.term, &l.kill); n != 2 {
				return killed
			}
			if !told {
				last = l
			}
			continue
		case !told:
			told = true
			acts()
		}
		if next == last.kill {
			killed, last = true, limits{never, never}
			f.kill()
		} else {
			last.term = never
			f.terminate()
		}
	}
}

// awaitInput waits until a file can be read, or has ended. It returns false when an instant has come
// before: then nothing can be read.
func awaitInput(file *os.File, until instant) bool {
	fds := []unix.PollFd{{Fd: int32(file.Fd()), Events: unix.POLLIN}}
	for {
		left := min(time.Duration(until-now()), longestPoll)
		n, err := unix.Poll(fds, int((max(left, 0)+time.Millisecond-1)/time.Millisecond))
		if n > 0 || err != nil && !errors.Is(err, unix.EINTR) {
			return true
		}
		if n == 0 && err == nil && now() >= until {
			return false
		}
	}
}

// longestPoll is less than the longest time that poll(2) takes, 2^31 ms.
const longestPoll = 24 * time.Hour

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
