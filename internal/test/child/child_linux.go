package child

import (
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"
)

// attributes have the kernel kill a child when its parent dies, also one that is suspended.
func attributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}

// Suspend stops the child with SIGSTOP, and waits until it has stopped. It is false if the child has ended before.
func (p *Process) Suspend() bool {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGSTOP); errors.Is(err, os.ErrProcessDone) {
		return false
	} else if err != nil {
		p.t.Fatal(err)
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for end := time.Now().Add(limit); ; <-look.C {
		switch state := p.state(); {
		case state == "T":
			return true
		case state == "" || state == "Z":
			return false
		case time.Now().After(end):
			p.t.Fatalf("the child does not stop: %q", state)
		}
	}
}

// state returns the kernel's letter for the state of the process, or nothing if there is no such process.
func (p *Process) state() string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.cmd.Process.Pid))
	if err != nil {
		return ""
	}
	return strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))[0]
}

// Resume continues a child that is suspended.
func (p *Process) Resume() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGCONT); err != nil {
		p.t.Fatal(err)
	}
}
