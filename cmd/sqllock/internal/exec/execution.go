package exec

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
)

// An execution is one run of exec, or of lead: a command under a lock.
type execution struct {
	wanted

	flags   *connect.Flags
	command []string
	program string // the file of the command

	clientID    string
	began       time.Time // when the program started
	wait        time.Duration
	waitForever bool
	// waitsThroughOutages is whether a wait goes on while the database fails.
	waitsThroughOutages bool
	ttl                 time.Duration
	ttlGiven            bool // by the user, else the table decides
	minHold             time.Duration
	untilSuccess        bool // the minimum hold is for a command that ended with 0
	grace               time.Duration
	noRenew             bool
	conflict            int // the exit code if the lock was not acquired before the timeout
	verbose             bool
	noNames             bool // nothing is written to the table of names
	recorded            bool // runs and skips are written to the table of names

	beforeLock func(*sqllock.Repository) // is called before the first try, unless it is nil

	renewed chan struct{} // receives after each renewal
	suspend func()        // stops this process, and returns when it has been continued

	lossTold atomic.Bool // whether it was printed that the lease of this command is lost: attend and the keeper may both find it

	stdin          io.Reader
	stdout, stderr io.Writer
	printer        printer // of messages, to stderr
}

// printf prints a message for every user. It does not wait for that: the printer must be flushed.
func (x *execution) printf(format string, args ...any) {
	x.printer.print(x.stderr, fmt.Sprintf("sqllock: "+format+"\n", args...))
}

// verbosef prints a message for users of --verbose.
func (x *execution) verbosef(format string, args ...any) {
	if x.verbose {
		x.printf(format, args...)
	}
}

// run acquires the lock, runs the command and releases the lock. It returns nil if the
// command ended with 0, else an exit.Error or the reason why the command did not run.
func (x *execution) run(ctx context.Context) error {
	// Report a mistyped name now, not after hours of waiting.
	if err := x.resolve(); err != nil {
		return err
	}
	defer x.printer.flush()
	process.CatchBrokenPipes()
	defer process.ReapOrphans()()
	signals := make(chan os.Signal, 16)
	process.NotifyForwarded(signals)
	defer signal.Stop(signals)

	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	h, err := x.acquireUnlessSignalled(ctx, interrupt, signals)
	if err != nil {
		return x.explain(err)
	}
	defer h.close(ctx)
	return x.supervise(h, signals) //nolint:contextcheck // the lease has the context
}
