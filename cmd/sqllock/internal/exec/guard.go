package exec

import (
	"fmt"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// A guard keeps a watchdog running for a child, and tells it when the lease of the child ends. If the
// watchdog is killed, the guard starts another.
type guard struct {
	x     *execution
	child *process.Child
	lease term

	// settled is closed when the first watchdog is ready, or if none can be started.
	settled chan struct{}
	// acted is closed when a watchdog is about to end the command at a limit: the lock is lost.
	acted      chan struct{}
	quit, done chan struct{}
}

// newGuard returns a guard whose first watchdog is w.
func (x *execution) newGuard(lease term, c *process.Child, w *watchdog) *guard {
	g := &guard{x: x, child: c, lease: lease, settled: make(chan struct{}), acted: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{})}
	go g.keep(w)
	return g
}

// dismiss ends the watchdog and the guard. It reports whether the lock is lost because a watchdog has
// ended the command. There is no guard on systems without watchdogs.
func (g *guard) dismiss() (acted bool) {
	if g == nil {
		return false
	}
	close(g.quit)
	<-g.done
	return isClosed(g.acted)
}

// lost returns a channel that is closed when a watchdog is about to end the command.
func (g *guard) lost() <-chan struct{} {
	if g == nil {
		return nil
	}
	return g.acted
}

func (g *guard) keep(w *watchdog) {
	defer close(g.done)
	for w != nil && g.endedEarly(w) {
		w = g.successor(w)
	}
	if !isClosed(g.settled) {
		close(g.settled)
	}
}

func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// endedEarly waits for the end of a watchdog, and reports whether it ended before it was
// dismissed.
func (g *guard) endedEarly(w *watchdog) bool {
	w.watch(g.child)
	lost := g.lease.Context().Done()
	for ready, acted := w.ready, w.acted; ; {
		w.limit(g.x.limitsOf(g.lease))
		select {
		case <-g.quit:
			w.dismiss()
			g.noteActed(w)
			return false
		case <-w.ended:
			g.noteActed(w)
			return true
		case <-acted:
			acted = nil
			g.noteActed(w)
		case <-ready:
			ready = nil
			g.becameReady()
		case <-g.x.renewed:
		case <-g.deadline(): // not every renewal is reported: its answer may have come late
		case <-lost:
			lost = nil
		}
	}
}

// deadline returns a channel that receives when the lease has ended or was renewed since.
func (g *guard) deadline() <-chan time.Time {
	if g.lease.Context().Err() != nil {
		return nil
	}
	return time.After(max(time.Until(g.lease.Deadline()), 0))
}

// noteActed notes that a watchdog is about to end the command, if it has said so. It prints
// that last: stderr may block.
func (g *guard) noteActed(w *watchdog) {
	if !isClosed(w.acted) || isClosed(g.acted) {
		return
	}
	told := g.x.lossTold.Swap(true)
	close(g.acted)
	if !told {
		g.x.printf("the lock %q is lost: this process stood still until its lease was over, so its watchdog ends the command: SIGTERM, and SIGKILL if it is still running after %s", g.x.name(), format.Duration(g.x.grace))
	}
}

func (g *guard) becameReady() {
	if isClosed(g.settled) {
		g.x.verbosef("the watchdog was killed; another has replaced it")
		return
	}
	close(g.settled)
}

// restartAfter is the minimum time between two starts of watchdogs for one command.
const restartAfter = time.Second

// successor starts a watchdog that replaces one that has ended. It returns nil if it
// cannot, or if the guard is dismissed.
func (g *guard) successor(w *watchdog) *watchdog {
	_ = w.pipe.Close()
	select {
	case <-g.quit:
		return nil
	case <-time.After(time.Until(w.started.Add(restartAfter))):
	}
	next, err := startWatchdog()
	if err != nil {
		g.x.printUnguarded(err)
		return nil
	}
	return next
}

// readyLimit is the time limit for a watchdog to become ready. After that the command
// runs without one, as on a system where none can be started.
const readyLimit = 10 * time.Second

// await waits until a watchdog is ready, so that the child may begin. It returns sooner if
// over is closed.
func (g *guard) await(over <-chan struct{}) {
	limit := time.NewTimer(readyLimit)
	defer limit.Stop()
	select {
	case <-g.settled:
	case <-over:
	case <-limit.C:
		g.x.printUnguarded(fmt.Errorf("it is not ready after %s", format.Duration(readyLimit)))
	}
}

// printUnguarded prints a warning about a watchdog that was not started.
func (x *execution) printUnguarded(err error) {
	x.printf("start a watchdog: %v; if this process is killed, the command may go on", err)
}
