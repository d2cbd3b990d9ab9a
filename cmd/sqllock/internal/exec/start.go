package exec

import (
	"context"
	"os/exec"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// start starts the command, under a keeper on systems that have watchdogs. The keeper must be
// dismissed.
func (x *execution) start(lease *sqllock.Lease, terminal bool) (c *process.Child, k *keeper, err error) {
	x.lossTold.Store(false)
	cmd := x.commandUnder(lease)
	w, err := startWatchdog()
	switch {
	case w != nil:
		return x.startWatched(lease, cmd, w, terminal)
	case err != nil:
		x.printUnguarded(err)
	}
	c, err = process.Start(cmd, terminal, true)
	return c, nil, err
}

// startWatched starts the command once a watchdog is ready, if the lease lasts until
// then. The kernel does not tie the command to this process: the watchdog finds the
// command's descendants through it, so the command must outlive this process.
func (x *execution) startWatched(lease term, cmd *exec.Cmd, w *watchdog, terminal bool) (*process.Child, *keeper, error) {
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
	keeper := x.newKeeper(lease, c, w)
	keeper.await(lease.Context().Done())
	x.printer.flush() // what was said before comes before what the command prints
	if err := g.openUnder(lease.Context()); err != nil {
		<-c.Ended
		keeper.dismiss()
		return nil, nil, err
	}
	return c, keeper, nil
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
