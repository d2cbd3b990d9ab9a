package exec

import (
	"context"
	"errors"
	"fmt"
	"os"
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
	child, dismiss, err := x.start(h.lease, terminal)
	if err != nil {
		if errors.Is(err, sqllock.ErrLockLost) {
			return &exit.Error{Code: exit.LockLost, Err: fmt.Errorf("the lock %q was lost before the command could run", x.name())}
		}
		x.releaseAtOnce(h)
		return notRun(err)
	}
	x.attend(h.lease.Context(), child, signals)
	dismiss()
	code := child.ExitCode()
	if x.release(h.lease) {
		return &exit.Error{Code: exit.LockLost, Err: fmt.Errorf("the lock %q was lost while the command ran; the command ended with %v", x.name(), child.State)}
	}
	if code != 0 {
		return &exit.Error{Code: code}
	}
	return nil
}

// stopDelay is the time between SIGTSTP and SIGSTOP: the command may handle SIGTSTP.
const stopDelay = 100 * time.Millisecond

// attend forwards signals to the child until it has ended, and ends it if the lease
// ends first. It reports whether it has printed that the lease is lost.
//
// With its own group the child does not get SIGTSTP and SIGCONT that are sent to the
// group of this process. It is stopped before this process is, and continued after
// it, so that it never works while the lease is not renewed.
func (x *execution) attend(lease context.Context, child *process.Child, signals <-chan os.Signal) (told bool) {
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
			x.printf("the lock %q is lost: the command gets SIGTERM, and SIGKILL if it is still running after %s", x.name(), format.Duration(x.grace))
			x.end(child)
			return true
		}
	}
}
