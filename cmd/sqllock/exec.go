package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/signal"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/sqllock/sqllock"
)

const (
	defaultExecTTL = 30 * time.Second
	defaultGrace   = 5 * time.Second
)

// An execution is one run of exec: a command under a lock.
type execution struct {
	g       *globals
	key     string
	command []string
	program string // the file of the command

	wait        time.Duration
	waitForEver bool
	ttl         time.Duration
	minHold     time.Duration
	grace       time.Duration
	noRenew     bool
	conflict    int // the exit code if the lock was not to be had
	verbose     bool

	suspend func() // stops this process, and returns when it has been continued

	stdin          io.Reader
	stdout, stderr io.Writer
	saying         sync.Mutex // messages come from several goroutines
}

func newExecCommand(g *globals) *cobra.Command {
	x := &execution{g: g, suspend: stopSelf}
	var nonblock bool
	cmd := &cobra.Command{
		Use:   "exec [flags] KEY -- CMD ARGS…",
		Short: "Run a command under a lock",
		Long: `Wait for the lock of KEY, run a command while it is held, and give it back. The
lease is renewed for as long as the command runs. The exit code is the command's,
128+n if signal n ended it, or:

  64   the command line is wrong; nothing was done
  69   trouble with the database; the command was not run
  75   the lock was not to be had in time (or what -E says)
  76   the lock was lost while the command ran, and the command was stopped
  126  the command was found but cannot be run
  127  the command was not found

The command finds KEY in SQLLOCK_KEY, in SQLLOCK_TOKEN the fencing token (a number
that is higher for each later holder of KEY), and in SQLLOCK_DEADLINE the time until
which the lease lasts unless it is renewed (RFC 3339, UTC). Signals are passed on to
it. If the lock is lost it gets SIGTERM and, after the grace period, SIGKILL. If exec
itself is killed, a watchdog kills the command and what that has started.

exec prints nothing of its own but trouble; --verbose tells more.`,
		Example: `  sqllock exec nightly-report -- ./report.sh
  sqllock exec --wait 10s deploy -- make deploy
  sqllock exec --nonblock --min-hold 1m cron/cleanup -- ./cleanup.sh`,
		Args:        keyAndCommand,
		Annotations: map[string]string{ownSignals: ""},
		RunE: func(cmd *cobra.Command, args []string) error {
			x.key, x.command = split(cmd, args)
			x.stdin, x.stdout, x.stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
			waitGiven := cmd.Flags().Changed("wait")
			x.waitForEver = !waitGiven && !nonblock
			if waitGiven && nonblock {
				return usageError("--wait and --nonblock exclude each other")
			}
			if err := x.check(); err != nil {
				return err
			}
			rememberName(x.key)
			return x.run(cmd.Context())
		},
	}
	flags := cmd.Flags()
	flags.DurationVarP(&x.wait, "wait", "w", 0, "how long to wait for the lock; 0 means one try (default: for ever)")
	flags.BoolVarP(&nonblock, "nonblock", "n", false, "do not wait: --wait 0")
	flags.DurationVar(&x.ttl, "ttl", defaultExecTTL, "time-to-live: how long the lock stays taken if this process or its host dies")
	flags.DurationVar(&x.minHold, "min-hold", 0, "keep the lock at least this long from its acquisition, also if the command ends sooner")
	flags.DurationVar(&x.grace, "grace", defaultGrace, "time between SIGTERM and SIGKILL when the lock is lost")
	flags.BoolVar(&x.noRenew, "no-renew", false, "do not renew: the command has one time-to-live at most")
	flags.IntVarP(&x.conflict, "conflict-exit-code", "E", exitNotAcquired, "the exit code if the lock was not to be had in time")
	flags.BoolVarP(&x.verbose, "verbose", "v", false, "say who is waited for, and what becomes of the lock")
	return cmd
}

// check refuses values that make no sense before anything is done.
func (x *execution) check() error {
	switch {
	case x.wait < 0:
		return usageError("--wait %v is negative", x.wait)
	case x.ttl < sqllock.MinTTL:
		return usageError("--ttl %v: it must be at least %v", x.ttl, sqllock.MinTTL)
	case x.minHold < 0:
		return usageError("--min-hold %v is negative", x.minHold)
	case x.grace < 0:
		return usageError("--grace %v is negative", x.grace)
	case x.conflict < 0 || x.conflict > 255:
		return usageError("--conflict-exit-code %d: exit codes are 0 to 255", x.conflict)
	}
	return nil
}

// run returns nil if the command ended with 0, else an exitError or what kept it
// from running.
func (x *execution) run(ctx context.Context) error {
	// A mistyped name should show now, not after hours of waiting.
	if err := x.resolve(); err != nil {
		return err
	}
	defer reapOrphans()()
	signals := make(chan os.Signal, 16)
	forwardedTo(signals)
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

// forwardedTo delivers the signals that exec deals with, except those that it
// was started to ignore, as nohup does.
func forwardedTo(signals chan<- os.Signal) {
	for _, s := range forwardedSignals {
		if !signal.Ignored(s) {
			signal.Notify(signals, s)
		}
	}
}

// say tells something that the user should know.
func (x *execution) say(format string, args ...any) {
	x.saying.Lock()
	defer x.saying.Unlock()
	_, _ = fmt.Fprintf(x.stderr, "sqllock: "+format+"\n", args...)
}

// mention tells something to a user who wants to know.
func (x *execution) mention(format string, args ...any) {
	if x.verbose {
		x.say(format, args...)
	}
}
