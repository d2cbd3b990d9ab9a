package exec

import (
	"context"
	"os/exec"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// start starts the command, under a guard on systems that have watchdogs. The guard must be
// dismissed.
func (x *execution) start(lease *sqllock.Lease, terminal bool) (c *process.Child, g *guard, err error) {
	x.lossTold.Store(false)
	cmd := x.commandUnder(lease)
	w, err := startWatchdog()
	switch {
	case w != nil:
		return x.startGuarded(lease, cmd, w, terminal)
	case err != nil:
		x.printUnguarded(err)
	}
	c, err = process.Start(cmd, terminal, true)
	return c, nil, err
}

// startGuarded starts the command once a watchdog is ready, if the lease lasts until
// then. The kernel does not tie the command to this process: the watchdog finds the
// command's descendants through it, so the command must outlive this process.
func (x *execution) startGuarded(lease term, cmd *exec.Cmd, w *watchdog, terminal bool) (*process.Child, *guard, error) {
	g, err := newGate(cmd)
	if err != nil {
		w.dismiss()
		return nil, nil, err
	}
	c, err := process.Start(cmd, terminal, false)
	g.started()
	if err != nil {
		w.dismiss()
		return nil, nil, g.named(err)
	}
	guard := x.newGuard(lease, c, w)
	guard.await(lease.Context().Done())
	if err := g.openUnder(lease.Context()); err != nil {
		<-c.Ended
		guard.dismiss()
		return nil, nil, err
	}
	return c, guard, nil
}

// openUnder lets the gate become the command, unless the lease has ended.
func (g *gate) openUnder(lease context.Context) error {
	if lease.Err() != nil {
		g.abandon()
		return context.Cause(lease)
	}
	return g.open()
}

// commandUnder returns the user's command, with the variables that describe its lock.
func (x *execution) commandUnder(lease *sqllock.Lease) *exec.Cmd {
	// It has no context, which could only kill, and only one process: attend stops it.
	cmd := &exec.Cmd{Path: x.program, Args: x.command, Stdin: x.stdin, Stdout: x.stdout, Stderr: x.stderr}
	cmd.Env = x.environment(lease)
	return cmd
}
