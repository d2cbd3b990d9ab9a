package main

import (
	"context"
	"os/exec"

	"github.com/sqllock/sqllock"
)

// start starts the command, under a watchdog where there are watchdogs. dismiss
// ends that.
func (x *execution) start(lease *sqllock.Lease, terminal bool) (c *child, dismiss func(), err error) {
	cmd := x.commandUnder(lease)
	w, err := startWatchdog()
	switch {
	case w != nil:
		return x.startGuarded(lease.Context(), cmd, w, terminal)
	case err != nil:
		x.unguarded(err)
	}
	c, err = startChild(cmd, terminal, true)
	return c, func() {}, err
}

// startGuarded starts the command once a watchdog is ready, if the lease lasts
// until then. The command is not tied to this process by the kernel: the watchdog
// finds its descendants through it, so it has to be there.
func (x *execution) startGuarded(lease context.Context, cmd *exec.Cmd, w *watchdog, terminal bool) (c *child, dismiss func(), err error) {
	g, err := newGate(cmd)
	if err != nil {
		w.dismiss()
		return nil, nil, err
	}
	c, err = startChild(cmd, terminal, false)
	g.started()
	if err != nil {
		w.dismiss()
		return nil, nil, g.named(err)
	}
	watch := x.newGuard(c, w)
	watch.await(lease.Done())
	if err := g.openUnder(lease); err != nil {
		<-c.ended
		watch.dismiss()
		return nil, nil, err
	}
	return c, watch.dismiss, nil
}

// openUnder lets the gate become the command, unless the lease is over.
func (g *gate) openUnder(lease context.Context) error {
	if lease.Err() != nil {
		g.abandon()
		return context.Cause(lease)
	}
	return g.open()
}

// unguarded says what follows from that a watchdog was not started.
func (x *execution) unguarded(err error) {
	x.say("start a watchdog: %v; if this process is killed, the command may go on", err)
}
