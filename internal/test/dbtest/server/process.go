package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"syscall"
	"time"
)

// errStubborn means that a process was asked to end and had to be killed.
var errStubborn = errors.New("did not end in time and was killed")

// A process is a child that dies with its parent.
type process struct {
	cmd *exec.Cmd
	// ended is closed when the child is gone; err, nil after an exit with 0, may
	// be read then.
	ended chan struct{}
	err   error
}

// launch starts a command as the given account (nil: the caller's), with
// output to log and nothing to read, in a process group of its own.
func launch(command []string, as *account, orphaned syscall.Signal, log *os.File) (*process, error) {
	attributes, err := attributes(as, orphaned)
	if err != nil {
		return nil, err
	}
	//nolint:noctx // a context can only kill, and only the one process; callers end it themselves
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = "/" // the account may not be able to read the caller's
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr = attributes
	p := &process{cmd: cmd, ended: make(chan struct{})}
	started := make(chan error)
	go p.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return p, nil
}

// run keeps its thread as long as the child lives, because the kernel means
// the thread, not the process, by "parent" when it signals orphans.
func (p *process) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := p.cmd.Start()
	started <- err
	if err != nil {
		return
	}
	p.err = p.cmd.Wait()
	close(p.ended)
}

// environment is what servers get to see: nothing of the caller's that could
// change their behaviour, such as PGDATA, MYSQL_HOME, TZ or a locale.
func environment() []string {
	return []string{"LC_ALL=C", "HOME=/", "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"}
}

func (p *process) hasEnded() bool {
	select {
	case <-p.ended:
		return true
	default:
		return false
	}
}

// exit says how a process that has ended did so.
func (p *process) exit() string { return p.cmd.ProcessState.String() }

// end sends the signal and waits. A process that is still there after the
// limit is killed. The exit status of a process that was asked to end says
// nothing, and is not looked at.
func (p *process) end(signal syscall.Signal, limit time.Duration) error {
	if err := p.cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(err, p.kill())
	}
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	select {
	case <-p.ended:
		return nil
	case <-deadline.C:
		return errors.Join(fmt.Errorf("%w (%v)", errStubborn, limit), p.kill())
	}
}

// kill ends the process and its children, and returns when they are gone.
func (p *process) kill() error {
	if p.hasEnded() {
		return nil
	}
	err := killFamily(p.cmd.Process)
	<-p.ended
	return err
}
