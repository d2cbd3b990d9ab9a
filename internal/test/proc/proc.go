// Package proc starts processes that end with this one, however it ends, and asks the kernel about others.
package proc

import (
	"os/exec"
	"runtime"
	"syscall"
)

// A Process is a child process. On Linux it gets a signal when its parent dies.
type Process struct {
	Cmd *exec.Cmd
	// Ended is closed when the child has ended. Then Err, that of [exec.Cmd.Wait], can be read.
	Ended chan struct{}
	Err   error
}

// Start starts a command, which gets the signal orphaned when this process dies. read, unless it is nil, reads the command's
// pipes to their end.
//
// It keeps a thread until the child has ended: for the kernel, which signals orphans, the parent is the thread and not the
// process.
func Start(cmd *exec.Cmd, orphaned syscall.Signal, read func()) (*Process, error) {
	endWithParent(cmd, orphaned)
	p := &Process{Cmd: cmd, Ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		if read != nil {
			read()
		}
		p.Err = cmd.Wait()
		close(p.Ended)
	}()
	return p, <-started
}

// HasEnded reports whether the child has ended.
func (p *Process) HasEnded() bool {
	select {
	case <-p.Ended:
		return true
	default:
		return false
	}
}

// Kill kills the child, if it has not ended, and returns when it has.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill() // it may have ended
	<-p.Ended
}
