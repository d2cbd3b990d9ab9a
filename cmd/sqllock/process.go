package main

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"time"
)

// What a shell answers for a command that it cannot run.
const (
	exitCannotRun = 126
	exitNotFound  = 127
)

// A child is the command that runs under the lock.
type child struct {
	process *os.Process
	ended   chan struct{} // closed when the process has ended
	code    int           // its exit code as a shell tells it, once it has
}

// start starts the command. The goroutine that calls it must stay on its thread
// until the child has ended: the kernel takes the end of the thread for that of
// the parent.
func start(cmd *exec.Cmd) (*child, error) {
	cmd.SysProcAttr = attributes()
	if err := cmd.Start(); err != nil {
		code := exitCannotRun
		if errors.Is(err, exec.ErrNotFound) || errors.Is(err, fs.ErrNotExist) {
			code = exitNotFound
		}
		return nil, &exitError{code, err}
	}
	c := &child{process: cmd.Process, ended: make(chan struct{})}
	go func() {
		_ = cmd.Wait() // the state tells
		c.code = statusOf(cmd.ProcessState)
		close(c.ended)
	}()
	return c, nil
}

// signal passes a signal on. The child may have ended meanwhile.
func (c *child) signal(s os.Signal) { _ = c.process.Signal(s) }

// terminate asks the child to end, and makes it end after the grace period or
// when ctx ends.
func (c *child) terminate(ctx context.Context, grace time.Duration) {
	if err := c.process.Signal(terminationSignal); err != nil {
		grace = 0
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.ended:
		return
	case <-timer.C:
	case <-ctx.Done():
	}
	_ = c.process.Kill()
	<-c.ended
}
