package child

import (
	"errors"
	"os"
	"syscall"
	"time"

	"github.com/sqllock/sqllock/internal/test/proc"
)

// Suspend stops the child with SIGSTOP, and waits until it has stopped. It is false if the child has ended before.
func (p *Process) Suspend() bool {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGSTOP); errors.Is(err, os.ErrProcessDone) {
		return false
	} else if err != nil {
		p.t.Fatal(err)
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(limit); ; <-look.C {
		switch state := proc.State(p.Cmd.Process.Pid); {
		case state == 'T':
			return true
		case state == 'Z':
			return false
		case time.Now().After(end):
			p.t.Fatalf("the child does not stop: %q", state)
		}
	}
}

// Resume continues a child that is suspended.
func (p *Process) Resume() {
	p.t.Helper()
	if err := p.Cmd.Process.Signal(syscall.SIGCONT); err != nil {
		p.t.Fatal(err)
	}
}
