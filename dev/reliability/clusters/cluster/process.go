//go:build linux

package cluster

import (
	"os/exec"
	"runtime"
	"syscall"
)

// A process is a child process, which is killed when this one dies.
type process struct {
	cmd   *exec.Cmd
	ended chan struct{} // closed when it has ended
}

// launch starts a command. It keeps a thread until the child has ended: for the kernel, which
// kills orphans, the parent is the thread and not the process.
func launch(cmd *exec.Cmd) (*process, error) {
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = new(syscall.SysProcAttr)
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	cmd.SysProcAttr.Setpgid = true // a Ctrl-C is for this process alone
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := cmd.Start()
		started <- err
		if err != nil {
			return
		}
		_ = cmd.Wait() // how it has ended stands in cmd.ProcessState
		close(p.ended)
	}()
	return p, <-started
}

// kill kills the process, and returns when it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.ended
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}
