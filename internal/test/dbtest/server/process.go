package server

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/sqllock/sqllock/internal/test/proc"
)

// errStubborn means that a process did not end after a signal and had to be killed.
var errStubborn = errors.New("did not end in time and was killed")

// A process is a child process that is killed when its parent dies.
type process struct{ *proc.Process }

// launch starts a command as the given account (nil: the caller's), in a process group of its
// own. Its output goes to log, and its standard input is empty.
func launch(command []string, as *account, orphaned syscall.Signal, log *os.File) (*process, error) {
	//nolint:noctx // a context can only kill a single process; callers end the process group
	cmd := exec.Command(command[0], command[1:]...)
	cmd.Dir = "/" // the account may have no access to the caller's directory
	cmd.Env = environment()
	cmd.Stdout, cmd.Stderr = log, log
	if err := runAs(cmd, as); err != nil {
		return nil, err
	}
	p, err := proc.Start(cmd, orphaned, nil)
	return &process{p}, err
}

// environment is the environment of servers. It has none of the caller's variables that could
// change their behaviour, such as PGDATA, MYSQL_HOME, TZ or a locale.
func environment() []string {
	return []string{"LC_ALL=C", "HOME=/", "PATH=" + os.Getenv("PATH") + ":/usr/sbin:/sbin"}
}

// exit describes how a process has ended.
func (p *process) exit() string { return p.Cmd.ProcessState.String() }

// end sends the signal and waits. A process that has not ended within the limit is killed. The
// exit status after a signal has no meaning and is ignored.
func (p *process) end(signal syscall.Signal, limit time.Duration) error {
	if err := p.Cmd.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return errors.Join(err, p.kill())
	}
	deadline := time.NewTimer(limit)
	defer deadline.Stop()
	select {
	case <-p.Ended:
		return nil
	case <-deadline.C:
		return errors.Join(fmt.Errorf("%w (%v)", errStubborn, limit), p.kill())
	}
}

// kill kills the process and its children, and waits until they have ended.
func (p *process) kill() error {
	if p.HasEnded() {
		return nil
	}
	err := killFamily(p.Cmd.Process)
	<-p.Ended
	return err
}
