package main

import (
	"os"
	"os/exec"
	"runtime"
	"time"
)

// A child is a process that was started and does not outlive this one, as far
// as the system can see to that.
type child struct {
	cmd      *exec.Cmd
	terminal bool // it shares this process's group, and the terminal that belongs to it

	// ended is closed when the child is gone; state may be read then.
	ended chan struct{}
	state *os.ProcessState
}

// startChild starts a command. With a terminal it stays in the process group of
// this process, as job control and the interrupt key want it. Without one it gets
// a group of its own, so that signals reach the children of a shell too.
//
// If tied, the kernel kills the child when this process dies, where it can.
func startChild(cmd *exec.Cmd, terminal, tied bool) (*child, error) {
	c := &child{cmd: cmd, terminal: terminal, ended: make(chan struct{})}
	cmd.SysProcAttr = childAttributes(!terminal, tied)
	started := make(chan error)
	go c.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// run keeps its thread as long as the child lives: the kernel means the thread,
// not the process, by the parent whose death kills the child.
func (c *child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := startOwn(c.cmd)
	started <- err
	if err != nil {
		return
	}
	// An error says nothing that the state does not: output goes to files.
	_ = waitOwn(c.cmd)
	c.state = c.cmd.ProcessState
	close(c.ended)
}

// killAfter waits for the child and its group to end, and kills what is left of
// them after the grace period.
func (c *child) killAfter(grace time.Duration) {
	deadline := time.NewTimer(grace)
	defer deadline.Stop()
	select {
	case <-c.ended:
	case <-deadline.C:
		c.kill()
		<-c.ended
		return
	}
	look := time.NewTicker(10 * time.Millisecond)
	defer look.Stop()
	for c.leftSomething() {
		select {
		case <-look.C:
		case <-deadline.C:
			c.kill()
			return
		}
	}
}
