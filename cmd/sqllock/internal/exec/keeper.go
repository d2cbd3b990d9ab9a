package exec

import (
	"fmt"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// A keeper keeps a watchdog running for a child, and tells it when the lease of the child ends. If the
// watchdog is killed, the keeper starts another.
type keeper struct {
	x     *execution
	child *process.Child
	lease term

	// settled is closed when the first watchdog is ready, or if none can be started.
	settled chan struct{}
	// acted is closed when a watchdog is about to end the command at a limit: the lock is lost.
	acted      chan struct{}
	quit, done chan struct{}
}

// newKeeper returns a keeper whose first watchdog is w.
func (x *execution) newKeeper(lease term, c *process.Child, w *watchdog) *keeper {
	k := &keeper{x: x, child: c, lease: lease, settled: make(chan struct{}), acted: make(chan struct{}), quit: make(chan struct{}), done: make(chan struct{})}
	go k.keep(w)
	return k
}

// dismiss ends the watchdog and the keeper. It reports whether the lock is lost because a watchdog has
// ended the command. There is no keeper on systems without watchdogs.
func (k *keeper) dismiss() (acted bool) {
	if k == nil {
		return false
	}
	close(k.quit)
	<-k.done
	return isClosed(k.acted)
}

// lost returns a channel that is closed when a watchdog is about to end the command.
func (k *keeper) lost() <-chan struct{} {
	if k == nil {
		return nil
	}
	return k.acted
}

func (k *keeper) keep(w *watchdog) {
	defer close(k.done)
	for w != nil && k.endedEarly(w) {
		w = k.successor(w)
	}
	if !isClosed(k.settled) {
		close(k.settled)
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
func (k *keeper) endedEarly(w *watchdog) bool {
	w.watch(k.child)
	lost := k.lease.Context().Done()
	for ready, acted := w.ready, w.acted; ; {
		w.limit(k.x.limitsOf(k.lease))
		select {
		case <-k.quit:
			w.dismiss()
			k.noteActed(w)
			return false
		case <-w.ended:
			k.noteActed(w)
			return true
		case <-acted:
			acted = nil
			k.noteActed(w)
		case <-ready:
			ready = nil
			k.becameReady()
		case <-k.x.renewed:
		case <-k.deadline(): // not every renewal is reported: its answer may have come late
		case <-lost:
			lost = nil
		}
	}
}

// deadline returns a channel that receives when the lease has ended or was renewed since.
func (k *keeper) deadline() <-chan time.Time {
	if k.lease.Context().Err() != nil {
		return nil
	}
	return time.After(max(time.Until(k.lease.Deadline()), 0))
}

// noteActed notes, and prints, that a watchdog is about to end the command, if it has said so.
func (k *keeper) noteActed(w *watchdog) {
	if !isClosed(w.acted) || isClosed(k.acted) {
		return
	}
	if !k.x.lossTold.Swap(true) {
		k.x.printf("the lock %q is lost: this process stood still until its lease was over, so its watchdog ends the command: SIGTERM, and SIGKILL if it is still running after %s", k.x.name(), format.Duration(k.x.grace))
	}
	close(k.acted)
}

func (k *keeper) becameReady() {
	if isClosed(k.settled) {
		k.x.verbosef("the watchdog was killed; another has replaced it")
		return
	}
	close(k.settled)
}

// restartAfter is the minimum time between two starts of watchdogs for one command.
const restartAfter = time.Second

// successor starts a watchdog that replaces one that has ended. It returns nil if it
// cannot, or if the keeper is dismissed.
func (k *keeper) successor(w *watchdog) *watchdog {
	_ = w.pipe.Close()
	select {
	case <-k.quit:
		return nil
	case <-time.After(time.Until(w.started.Add(restartAfter))):
	}
	next, err := startWatchdog()
	if err != nil {
		k.x.printUnguarded(err)
		return nil
	}
	return next
}

// readyLimit is the time limit for a watchdog to become ready. After that the command
// runs without one, as on a system where none can be started.
const readyLimit = 10 * time.Second

// await waits until a watchdog is ready, so that the child may begin. It returns sooner if
// over is closed.
func (k *keeper) await(over <-chan struct{}) {
	limit := time.NewTimer(readyLimit)
	defer limit.Stop()
	select {
	case <-k.settled:
	case <-over:
	case <-limit.C:
		k.x.printUnguarded(fmt.Errorf("it is not ready after %s", format.Duration(readyLimit)))
	}
}

// printUnguarded prints a warning about a watchdog that was not started.
func (x *execution) printUnguarded(err error) {
	x.printf("no watchdog could be started (%v): if sqllock is killed, the command goes on without the lock", err)
}
