package exec

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// A watchdog is a process that kills a command when this process has ended without
// dismissing the watchdog, for example by SIGKILL: then nothing renews the lease. It also ends the
// command at the limits that it was told last, when this process is stopped.
//
// A renewal and a limit have one order: that of the pipe. A limit that was written before the
// watchdog finds the last one reached replaces it. Otherwise the watchdog says that it ends the
// command, before it does, and the lock counts as lost, whatever the database has answered.
//
// It notices the end by its standard input, a pipe whose other end only this process
// has. Its standard output is a pipe to this process. It has no other file of this
// process. In its own session it gets neither the terminal's keys nor signals to a
// group.
type watchdog struct {
	cmd     *exec.Cmd
	pipe    *os.File
	started time.Time
	ready   chan struct{} // closed when it ignores signals and has read which command to kill
	acted   chan struct{} // closed when it is about to end the command at a limit
	ended   chan struct{} // closed when it has ended; it closes nothing else then
}

// startWatchdog starts a watchdog. It returns nil on systems without watchdogs.
func startWatchdog() (*watchdog, error) {
	cmd, err := watchdogCommand()
	if cmd == nil {
		return nil, err
	}
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer func() { _ = read.Close() }()
	answer, theirs, err := os.Pipe()
	if err != nil {
		_ = write.Close()
		return nil, err
	}
	defer func() { _ = theirs.Close() }()
	cmd.Stdin, cmd.Stdout = read, theirs
	if err := process.StartOwn(cmd); err != nil {
		_, _ = write.Close(), answer.Close()
		return nil, err
	}
	w := newWatchdog(cmd, write)
	go w.run(answer)
	return w, nil
}

// newWatchdog returns a watchdog that was started.
func newWatchdog(cmd *exec.Cmd, pipe *os.File) *watchdog {
	return &watchdog{cmd: cmd, pipe: pipe, started: time.Now(), ready: make(chan struct{}), acted: make(chan struct{}), ended: make(chan struct{})}
}

// run reads the two lines that a watchdog can write, and waits for its end.
func (w *watchdog) run(answer *os.File) {
	defer close(w.ended)
	defer func() { _ = answer.Close() }()
	lines := bufio.NewScanner(answer)
	for _, said := range []chan struct{}{w.ready, w.acted} {
		if !lines.Scan() {
			break
		}
		close(said)
	}
	_ = process.WaitOwn(w.cmd) // how it has ended does not matter
}

// watch sends the watchdog the command to kill. Errors are ignored: if the watchdog has
// ended, ended is closed.
func (w *watchdog) watch(c *process.Child) {
	group := c.Cmd.Process.Pid
	if c.SharesTerminal {
		group = 0
	}
	w.tell("%d %d %d\n", os.Getpid(), c.Cmd.Process.Pid, group)
}

// limit sends the watchdog the limits of the command.
func (w *watchdog) limit(l limits) { w.tell("%d %d\n", l.term, l.kill) }

// tell does not wait for a watchdog that is stopped and does not read.
func (w *watchdog) tell(format string, args ...any) {
	_ = w.pipe.SetWriteDeadline(time.Now().Add(time.Second))
	_, _ = fmt.Fprintf(w.pipe, format, args...)
}

// dismiss kills the watchdog before it can notice the end of the pipe.
func (w *watchdog) dismiss() {
	if w == nil {
		return
	}
	_ = w.cmd.Process.Kill()
	<-w.ended
	_ = w.pipe.Close()
}
