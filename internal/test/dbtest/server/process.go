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

// errStubborn means that a process did not end after a signal and had to be killed.
var errStubborn = errors.New("did not end in time and was killed")

// A process is a child process that is killed when its parent dies.
type process struct {
	cmd *exec.Cmd
	// ended is closed when the child has ended. Then err can be read; it is nil after an
	// exit with 0.
	ended chan struct{}
	err   error
}

// launch starts a command as the given account (nil: the caller's), in a process group of its
// own. Its output goes to log, and its standard input is empty.
func launch(command []string, as *account, orphaned syscall.Signal, log *os.File) (*process, error) {
	attributes, err := attributes(as, orphaned)
	if err != nil {
		return nil, err
	}
	//nolint:noctx // a context can only kill a single process; callers end the process group
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = "/" // the account may have no access to the caller's directory
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

// run keeps its thread until the child has ended: for the kernel, which signals orphans, the
// parent is the thread and not the process.
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

// environment is the environment of servers. It has none of the caller's variables that could
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

// exit describes how a process has ended.
func (p *process) exit() string { return p.cmd.ProcessState.String() }

// end sends the signal and waits. A process that has not ended within the limit is killed. The
// exit status after a signal has no meaning and is ignored.
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

// kill kills the process and its children, and waits until they have ended.
func (p *process) kill() error {
	if p.hasEnded() {
		return nil
	}
	err := killFamily(p.cmd.Process)
	<-p.ended
	return err
}
