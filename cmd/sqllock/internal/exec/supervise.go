package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// supervise runs the command under the lease, and releases the lease.
func (x *execution) supervise(h *holding, signals chan os.Signal) error {
	terminal := process.HasTerminal()
	if !terminal {
		process.NotifyStops(signals)
	}
	began := time.Now()
	child, keeper, err := x.start(h.lease, terminal)
	if err != nil {
		if errors.Is(err, sqllock.ErrLockLost) {
			return &exit.Error{Code: exit.LockLost, Err: fmt.Errorf("the lock %q was lost before the command could run", x.name())}
		}
		err = notRun(err)
		x.record(h, began, exit.CodeOf(err))
		x.releaseAtOnce(h)
		return err
	}
	x.attend(h.lease.Context(), child, keeper.lost(), signals)
	return x.finish(h, began, child, keeper.dismiss())
}

// finish records how the command has ended, and releases the lease. acted is whether a watchdog has ended the command: then
// the lock counts as lost, also if the lease lasts.
func (x *execution) finish(h *holding, began time.Time, child *process.Child, acted bool) error {
	code := child.ExitCode()
	if code == 0 && x.untilSuccess && !acted {
		x.keep(h)
	}
	if acted || h.lease.Context().Err() != nil {
		x.record(h, began, exit.LockLost)
	} else {
		x.record(h, began, code)
	}
	if lost := x.release(h.lease); lost != nil || acted {
		return &exit.Error{Code: exit.LockLost, Err: fmt.Errorf("the lock %q was lost while the command ran%s; the command ended with %v%s", x.name(), cause(h.lease, lost), child.State, x.successor(h))}
	}
	if code != 0 {
		return &exit.Error{Code: code}
	}
	return nil
}

// lossTimeout limits how long exec asks who has a lock that it has lost.
const lossTimeout = time.Second

// cause says why a lease is lost, as lost does, which may be nil: without the names of the lock and its holder. The
// sentences are those of lossLocked in hold.go of the engine.
func cause(lease *sqllock.Lease, lost error) string {
	if lost == nil {
		return ""
	}
	text := exit.Text(lost)
	if _, why, ok := strings.Cut(text, lease.Holder()+"): "); ok {
		text = why
	}
	return ": " + text
}

// successor says who has a lock now that is lost.
func (x *execution) successor(h *holding) string {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.lease.Context()), lossTimeout)
	defer cancel()
	rows, err := answered(ctx, 0, func() (map[string]sqllock.Row, error) {
		return h.registry.Repository().PeekAll(ctx, h.lease.Keys()...)
	})
	for _, key := range h.lease.Keys() {
		if row, ok := rows[key]; err == nil && ok && row.Holder != h.lease.Holder() && !row.Expired() {
			return "; " + format.Printable(row.Holder) + " has it now"
		}
	}
	return ""
}

// stopDelay is the time between SIGTSTP and SIGSTOP: the command may handle SIGTSTP.
const stopDelay = 100 * time.Millisecond

// attend forwards signals to the child until it has ended, and ends it if the lease
// ends first, or a watchdog acts. It reports whether it was printed that the lease is lost.
//
// With its own group the child does not get SIGTSTP and SIGCONT that are sent to the
// group of this process. It is stopped before this process is, and continued after
// it, so that it never works while the lease is not renewed.
func (x *execution) attend(lease context.Context, child *process.Child, acted <-chan struct{}, signals <-chan os.Signal) (told bool) {
	var stopping <-chan time.Time
	for {
		select {
		case <-child.Ended:
			return false
		case s := <-signals:
			switch {
			case process.IsStop(s):
				stopping = time.After(stopDelay)
				child.Signal(s)
			case process.IsContinue(s):
				stopping = nil
				if lease.Err() == nil { // else the child is ended before it can work
					child.Resume()
				}
			case !child.GotFromTerminal(s):
				child.Signal(s)
			}
		case <-stopping:
			if len(signals) > 0 { // it may be SIGCONT, which would not end a later stop
				stopping = time.After(0)
				continue
			}
			child.Stop()
			x.suspend()
		case <-lease.Done():
			if !x.lossTold.Swap(true) {
				x.printf("the lock %q is lost: the command gets SIGTERM, and SIGKILL if it is still running after %s", x.name(), format.Duration(x.grace))
			}
			x.end(child)
			return true
		case <-acted: // the keeper prints it
			x.end(child)
			return true
		}
	}
}
