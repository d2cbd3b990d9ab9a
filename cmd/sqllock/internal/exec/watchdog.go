package exec

import (
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
// It notices the end by its standard input, a pipe whose other end only this process
// has. Its standard output is a pipe to this process. It has no other file of this
// process. In its own session it gets neither the terminal's keys nor signals to a
// group.
type watchdog struct {
	cmd     *exec.Cmd
	pipe    *os.File
	started time.Time
	ready   chan struct{} // closed when it ignores signals and has read which command to kill
	ended   chan struct{}
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
	w := &watchdog{cmd: cmd, pipe: write, started: time.Now(), ready: make(chan struct{}), ended: make(chan struct{})}
	go w.awaitAnswer(answer)
	go func() {
		defer close(w.ended)
		_ = process.WaitOwn(cmd) // how it has ended does not matter
	}()
	return w, nil
}

// awaitAnswer closes ready when the watchdog has answered. If it never answers,
// awaitAnswer returns when it has ended.
func (w *watchdog) awaitAnswer(answer *os.File) {
	defer func() { _ = answer.Close() }()
	if n, _ := answer.Read(make([]byte, 1)); n == 1 {
		close(w.ready)
	}
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
