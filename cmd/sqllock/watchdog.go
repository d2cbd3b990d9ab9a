package main

import (
	"fmt"
	"os"
	"os/exec"
	"time"
)

// watchdogName is the name by which a watchdog is started. It does not contain
// that of this program, so that what is meant to kill one does not kill both.
const watchdogName = "exec-watchdog"

// A watchdog is a process that kills a command when this process has ended without
// dismissing it, be it by SIGKILL: nothing renews the lock of that command any more.
//
// It learns of the end from its standard input, a pipe whose other end only this
// process has. Its standard output is a pipe to this process. It has no other file
// of this process, and a session of its own, in which neither the terminal's keys
// nor signals to a group reach it.
type watchdog struct {
	cmd     *exec.Cmd
	pipe    *os.File
	started time.Time
	ready   chan struct{} // closed when it ignores signals and knows the command
	ended   chan struct{}
}

// startWatchdog starts a watchdog. It returns nil on systems without.
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
	if err := startOwn(cmd); err != nil {
		_, _ = write.Close(), answer.Close()
		return nil, err
	}
	w := &watchdog{cmd: cmd, pipe: write, started: time.Now(), ready: make(chan struct{}), ended: make(chan struct{})}
	go w.awaitAnswer(answer)
	go func() {
		defer close(w.ended)
		_ = waitOwn(cmd) // that it has ended is all there is to know
	}()
	return w, nil
}

// awaitAnswer closes ready when the watchdog has answered. It returns at the end of
// the watchdog if that does not answer.
func (w *watchdog) awaitAnswer(answer *os.File) {
	defer func() { _ = answer.Close() }()
	if n, _ := answer.Read(make([]byte, 1)); n == 1 {
		close(w.ready)
	}
}

// watch tells the watchdog which command to kill. If the watchdog has ended, ended
// is closed, and the error of the write says nothing more.
func (w *watchdog) watch(c *child) {
	group := c.cmd.Process.Pid
	if c.terminal {
		group = 0
	}
	_, _ = fmt.Fprintf(w.pipe, "%d %d %d\n", os.Getpid(), c.cmd.Process.Pid, group)
}

// dismiss ends the watchdog before it can see the end of the pipe.
func (w *watchdog) dismiss() {
	if w == nil {
		return
	}
	_ = w.cmd.Process.Kill()
	<-w.ended
	_ = w.pipe.Close()
}
