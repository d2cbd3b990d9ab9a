package main

import (
	"fmt"
	"time"
)

// A guard keeps a watchdog over a child. If the watchdog is killed, another takes
// its place.
type guard struct {
	x     *execution
	child *child

	// set is closed when the first watchdog is ready, or if none can be started.
	set         chan struct{}
	leave, left chan struct{}
}

// newGuard returns a guard whose first watchdog is w.
func (x *execution) newGuard(c *child, w *watchdog) *guard {
	g := &guard{x: x, child: c, set: make(chan struct{}), leave: make(chan struct{}), left: make(chan struct{})}
	go g.keep(w)
	return g
}

// dismiss ends the watchdog and the guard.
func (g *guard) dismiss() {
	close(g.leave)
	<-g.left
}

func (g *guard) keep(w *watchdog) {
	defer close(g.left)
	for w != nil && g.outlasts(w) {
		w = g.successor(w)
	}
	if !g.isSet() {
		close(g.set)
	}
}

func (g *guard) isSet() bool {
	select {
	case <-g.set:
		return true
	default:
		return false
	}
}

// outlasts reports whether a watchdog has ended before it was dismissed.
func (g *guard) outlasts(w *watchdog) bool {
	w.watch(g.child)
	for ready := w.ready; ; {
		select {
		case <-g.leave:
			w.dismiss()
			return false
		case <-w.ended:
			return true
		case <-ready:
			ready = nil
			g.becameReady()
		}
	}
}

func (g *guard) becameReady() {
	if g.isSet() {
		g.x.mention("the watchdog was killed; another has taken its place")
		return
	}
	close(g.set)
}

// restartAfter is the least time between two starts of watchdogs for one command.
const restartAfter = time.Second

// successor returns another watchdog for one that has ended, or nil.
func (g *guard) successor(w *watchdog) *watchdog {
	_ = w.pipe.Close()
	select {
	case <-g.leave:
		return nil
	case <-time.After(time.Until(w.started.Add(restartAfter))):
	}
	next, err := startWatchdog()
	if err != nil {
		g.x.unguarded(err)
		return nil
	}
	return next
}

// readyLimit bounds the wait for a watchdog: a system on which none gets ready is to
// run the command all the same, as one on which none can be started.
const readyLimit = 10 * time.Second

// await returns when the child may work: under a watchdog that is ready. It returns
// sooner if over is closed.
func (g *guard) await(over <-chan struct{}) {
	limit := time.NewTimer(readyLimit)
	defer limit.Stop()
	select {
	case <-g.set:
	case <-over:
	case <-limit.C:
		g.x.unguarded(fmt.Errorf("it is not ready after %s", short(readyLimit)))
	}
}
