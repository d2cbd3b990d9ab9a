// Package process starts child processes, signals them, and lists the processes of the
// system.
package process

import (
	"os"
	"os/exec"
	"runtime"
)

// A Child is a process that this one has started. It ends with this process, where the
// system can enforce that.
type Child struct {
	Cmd *exec.Cmd
	// SharesTerminal is true if the child is in the process group of this process,
	// which belongs to a terminal.
	SharesTerminal bool

	Ended chan struct{}    // closed when the child has ended
	State *os.ProcessState // set before Ended is closed
}

// Start starts a command.
//
// If sharesTerminal is true, the child stays in the process group of this process, as
// job control and the interrupt key need it. Otherwise it gets its own group, so that
// signals also reach the children of a shell.
//
// If tied is true, the kernel kills the child when this process dies, where it can.
func Start(cmd *exec.Cmd, sharesTerminal, tied bool) (*Child, error) {
	c := &Child{Cmd: cmd, SharesTerminal: sharesTerminal, Ended: make(chan struct{})}
	cmd.SysProcAttr = attributes(!sharesTerminal, tied)
	started := make(chan error)
	go c.run(started)
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// run keeps its thread while the child lives: for the kernel, the parent whose death
// kills the child is the thread, not the process.
func (c *Child) run(started chan<- error) {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	err := StartOwn(c.Cmd)
	started <- err
	if err != nil {
		return
	}
	// The state has everything that an error says: output goes to files.
	_ = WaitOwn(c.Cmd)
	c.State = c.Cmd.ProcessState
	close(c.Ended)
}
