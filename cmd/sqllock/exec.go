package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"runtime"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/sqllock/sqllock"
)

// What a command finds in its environment.
const (
	keyVariable      = "SQLLOCK_KEY"
	deadlineVariable = "SQLLOCK_DEADLINE"
)

const (
	defaultExecTTL = 30 * time.Second
	defaultGrace   = 5 * time.Second
)

// An execution is one run of a command under a lock.
type execution struct {
	key      string
	command  []string
	wait     time.Duration // negative: for ever
	ttl      time.Duration
	minHold  time.Duration
	grace    time.Duration
	noRenew  bool
	verbose  bool
	conflict int // exit code when the lock is not to be had
}

func newExecCommand(g *globals) *cobra.Command {
	var x execution
	var try bool
	cmd := &cobra.Command{
		Use:   "exec [flags] KEY -- COMMAND [ARGUMENTS…]",
		Short: "Run a command while holding a lock",
		Long: `Run a command while holding a lock: one at a time, over all machines that use
the database.

The lease is renewed while the command runs. If it is lost all the same (the
database was out of reach for too long, or somebody removed the row), the command
gets SIGTERM, and SIGKILL after the grace period. If this process dies, the command
is killed, and others get the lock when its time-to-live has passed.

The command finds the key in SQLLOCK_KEY and the end of the lease as it was at the
start in SQLLOCK_DEADLINE (RFC 3339, UTC).

The exit code is the command's (128 and the signal's number if a signal ended it),
126 or 127 if it could not be run or found, 75 if the lock was not to be had, 69 if
the database made trouble, and 76 if the lock was lost.`,
		Example: `  sqllock exec nightly -- ./nightly.sh
  sqllock exec --wait 10s --ttl 1m deploy -- make deploy
  sqllock exec --nonblock --min-hold 50s poll -- ./poll.sh     # from cron, on every machine`,
		Annotations: map[string]string{ownSignals: ""},
		Args:        execArguments,
		RunE: func(cmd *cobra.Command, args []string) error {
			x.key, x.command, x.ttl = args[0], commandOf(args), g.ttl
			switch {
			case try:
				x.wait = 0
			case !cmd.Flags().Changed("wait"):
				x.wait = -1
			}
			if err := x.check(); err != nil {
				return err
			}
			return x.run(cmd, g)
		},
	}
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what follows the key is the command's
	flags.DurationVarP(&x.wait, "wait", "w", 0, "how long to wait for the lock; 0 is a single try (default: for ever)")
	flags.BoolVarP(&try, "nonblock", "n", false, "try once, like --wait 0")
	flags.DurationVar(&g.ttl, "ttl", defaultExecTTL, "time-to-live: how long after a crash the lock stays taken")
	flags.DurationVar(&x.minHold, "min-hold", 0, "keep the lock taken for at least this long, however short the command")
	flags.DurationVar(&x.grace, "grace", defaultGrace, "time between SIGTERM and SIGKILL when the lock is lost")
	flags.BoolVar(&x.noRenew, "no-renew", false, "hold the lock for one time-to-live at most")
	flags.IntVarP(&x.conflict, "conflict-exit-code", "E", exitNotAcquired, "exit code when the lock is not to be had in time")
	flags.BoolVarP(&x.verbose, "verbose", "v", false, "say what is going on")
	return cmd
}

func execArguments(_ *cobra.Command, args []string) error {
	if len(args) == 0 || len(commandOf(args)) == 0 {
		return withHint(usageError("a key and a command are needed"), "sqllock exec KEY -- COMMAND")
	}
	return nil
}

// commandOf returns what follows the key.
func commandOf(args []string) []string {
	if len(args) > 1 && args[1] == "--" {
		return args[2:]
	}
	return args[1:]
}

func (x *execution) check() error {
	switch {
	case x.wait < 0 && x.wait != -1:
		return usageError("--wait %v is negative", x.wait)
	case x.minHold < 0:
		return usageError("--min-hold %v is negative", x.minHold)
	case x.grace < 0:
		return usageError("--grace %v is negative", x.grace)
	case x.conflict < 0 || x.conflict > 255:
		return usageError("--conflict-exit-code %d is not between 0 and 255", x.conflict)
	}
	return nil
}

// run waits for the lock and runs the command under it.
func (x *execution) run(cmd *cobra.Command, g *globals) (err error) {
	signals := make(chan os.Signal, 16)
	signal.Notify(signals, passedOn...)
	defer signal.Stop(signals)
	ctx := cmd.Context()

	c, err := g.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	repository, err := g.repository(c, sqllock.RepositoryOptions{})
	if err != nil {
		return err
	}
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: x.ttl})
	if err != nil {
		return err
	}
	lock, err := registry.Obtain(x.key)
	if err != nil {
		return err
	}
	rememberName(x.key)

	// The lease's context is made from this one, so it must outlast the wait.
	interruptible, interrupt := context.WithCancel(ctx)
	defer interrupt()
	lease, err := x.acquire(interruptible, interrupt, cmd, lock, signals)
	if err != nil {
		return err
	}
	code, err := x.runUnder(ctx, cmd, lease, signals)
	return x.finish(ctx, lease, code, err)
}

// acquire waits for the lock. A signal ends the wait.
func (x *execution) acquire(ctx context.Context, interrupt func(), cmd *cobra.Command, lock *sqllock.JdbcLock, signals <-chan os.Signal) (*sqllock.Lease, error) {
	var lease *sqllock.Lease
	var err error
	acquired := make(chan struct{})
	go func() {
		defer close(acquired)
		lease, err = x.lock(ctx, cmd, lock)
	}()
	select {
	case <-acquired:
	case s := <-signals:
		interrupt()
		<-acquired
		if err == nil {
			err = lease.Unlock(ctx) // it came in the same instant
		}
		if !errors.Is(err, sqllock.ErrDatabase) {
			return nil, &exitError{code: signalCode(s)}
		}
	}
	if errors.Is(err, sqllock.ErrNotAcquired) {
		return nil, &exitError{x.conflict, err}
	}
	return lease, err
}

// lock acquires as the flags say.
func (x *execution) lock(ctx context.Context, cmd *cobra.Command, lock *sqllock.JdbcLock) (*sqllock.Lease, error) {
	if x.verbose && x.wait != 0 {
		lease, err := lock.TryLock(ctx)
		if !errors.Is(err, sqllock.ErrNotAcquired) || ctx.Err() != nil {
			return lease, err
		}
		x.say(cmd, "%s; waiting", textOf(err))
	}
	if x.wait < 0 {
		return lock.Lock(ctx)
	}
	return lock.TryLockFor(ctx, x.wait)
}

// runUnder runs the command until it ends, or is ended because the lease is lost,
// and returns its exit code.
func (x *execution) runUnder(ctx context.Context, cmd *cobra.Command, lease *sqllock.Lease, signals <-chan os.Signal) (int, error) {
	runtime.LockOSThread() // see start
	defer runtime.UnlockOSThread()
	//nolint:noctx,gosec // a context could only kill it; running what the user says is the point
	command := exec.Command(x.command[0], x.command[1:]...)
	command.Stdin, command.Stdout, command.Stderr = cmd.InOrStdin(), cmd.OutOrStdout(), cmd.ErrOrStderr()
	command.Env = append(os.Environ(), keyVariable+"="+x.key,
		deadlineVariable+"="+time.Now().Add(time.Until(lease.Deadline())).UTC().Format(time.RFC3339Nano))
	c, err := start(command)
	if err != nil {
		return 0, err
	}
	if !x.noRenew {
		stop := keepRenewed(ctx, lease, x.ttl, func(err error) { x.warn(cmd, "%s", textOf(err)) })
		defer stop()
	}
	for {
		select {
		case <-c.ended:
			return c.code, nil
		case s := <-signals:
			if !fromTerminal(s) || !term.IsTerminal(int(os.Stdin.Fd())) {
				c.signal(s)
			}
		case <-lease.Context().Done():
			x.warn(cmd, "the lock %q is lost: ending the command", x.key)
			c.terminate(ctx, x.grace)
			return c.code, nil
		}
	}
}

// finish gives the lease back. A lost lock is worse news than anything that the
// command may have to tell.
func (x *execution) finish(ctx context.Context, lease *sqllock.Lease, code int, err error) error {
	unlock := lease.Unlock
	if x.minHold > 0 && err == nil {
		unlock = func(ctx context.Context) error { return lease.UnlockAfter(ctx, x.minHold) }
	}
	switch unlockErr := unlock(ctx); {
	case errors.Is(unlockErr, sqllock.ErrLockLost):
		return &exitError{exitLockLost, unlockErr}
	case err != nil:
		return err
	case code != 0:
		return &exitError{code: code}
	default:
		return unlockErr
	}
}

// say tells what is going on, if asked to.
func (x *execution) say(cmd *cobra.Command, format string, args ...any) {
	if x.verbose {
		x.warn(cmd, format, args...)
	}
}

func (*execution) warn(cmd *cobra.Command, format string, args ...any) {
	_, _ = fmt.Fprintf(cmd.ErrOrStderr(), "sqllock: "+format+"\n", args...) // there is no other place
}
