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
// process has. It has no other file of this process, and a session of its own, in
// which neither the terminal's keys nor signals to a group reach it.
type watchdog struct {
	cmd     *exec.Cmd
	pipe    *os.File
	started time.Time
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
	cmd.Stdin = read
	if err := startOwn(cmd); err != nil {
		_ = write.Close()
		return nil, err
	}
	w := &watchdog{cmd: cmd, pipe: write, started: time.Now(), ended: make(chan struct{})}
	go func() {
		defer close(w.ended)
		_ = waitOwn(cmd) // that it has ended is all there is to know
	}()
	return w, nil
}

// watch tells the watchdog which command to kill. If it has ended itself, it is
// not there to be told, and ended says so.
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

// restartAfter is the least time between two starts of watchdogs for one command.
const restartAfter = time.Second

// guard keeps a watchdog, w at first, over the child until dismiss is called. If
// it is killed, another takes its place; that there is none is told.
func guard(c *child, w *watchdog, complain func(error)) (dismiss func()) {
	if w == nil {
		return func() {}
	}
	w.watch(c)
	leave, left := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(left)
		for w != nil {
			select {
			case <-leave:
				w.dismiss()
				return
			case <-w.ended:
			}
			w = w.replaced(c, leave, complain)
		}
	}()
	return func() {
		close(leave)
		<-left
	}
}

// replaced returns the successor of a watchdog that has ended, or nil.
func (w *watchdog) replaced(c *child, leave <-chan struct{}, complain func(error)) *watchdog {
	_ = w.pipe.Close()
	select {
	case <-leave:
		return nil
	case <-time.After(time.Until(w.started.Add(restartAfter))):
	}
	next, err := startWatchdog()
	if err != nil {
		complain(err)
		return nil
	}
	next.watch(c)
	return next
}
