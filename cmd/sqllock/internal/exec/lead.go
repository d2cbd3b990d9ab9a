package exec

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/sync/leader"
)

// A campaign is one run of lead: an execution for each term.
type campaign struct {
	*execution

	relay   relay
	failing bool             // the last thing that was printed is that the database fails
	ended   *os.ProcessState // of the command that has just ended under its lease, or nil
}

// lead campaigns until a signal ends it, or the command ends with another code than 0.
func (x *execution) lead(ctx context.Context) error {
	// Report a mistyped name now, not after hours of waiting.
	if err := x.resolve(); err != nil {
		return err
	}
	defer x.printer.flush()
	process.CatchBrokenPipes()
	defer process.ReapOrphans()()
	ctx, interrupt := context.WithCancelCause(ctx)
	defer interrupt(nil)
	c := &campaign{execution: x, relay: relay{interrupt: interrupt, suspend: x.suspend}}
	defer c.relay.start()()
	return c.explain(c.run(ctx))
}

// run opens the registry, and runs an elector over it.
func (c *campaign) run(ctx context.Context) error {
	h, err := answered(ctx, answerTimeout, func() (*holding, error) { return c.open(ctx) })
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return err
	}
	defer h.close(ctx)
	elector, err := leader.New(h.registry, c.key, &leader.Options{OnError: c.printError, OnChange: c.printLeader})
	if err != nil {
		return err
	}
	return elector.Run(ctx, c.term)
}

// term runs the command while this process leads. It ends the command only if the lease is
// lost: a signal that ends the campaign was forwarded to the command, and the lease is renewed
// until the command has ended.
func (c *campaign) term(ctx context.Context, lease *sqllock.Lease) error {
	c.failing, c.ended = false, nil
	signals, redirected := c.relay.redirect()
	defer redirected()
	if ctx.Err() != nil {
		return nil // a signal has just ended the campaign
	}
	c.verbosef("leads %q as %s, %s", c.key, lease.Holder(), tokenText(lease))
	child, keeper, err := c.start(lease, process.HasTerminal()) //nolint:contextcheck // the lease has the context
	if err != nil {
		if errors.Is(err, sqllock.ErrLockLost) {
			return nil // before the command could run
		}
		return notRun(err)
	}
	told := c.attend(lease.Context(), child, keeper.lost(), signals) //nolint:contextcheck // ctx ends with the campaign, the command later
	acted := keeper.dismiss()
	code := child.ExitCode()
	c.verbosef("the command has ended with %v", child.State)
	if lease.Context().Err() != nil || acted {
		if !told && !acted { // the command has ended before
			c.printLost(child.State)
		}
		return nil
	}
	c.ended = child.State
	if code == 0 && ctx.Err() == nil {
		return nil
	}
	return &exit.Error{Code: code}
}

// printError prints the first of several errors of the database, and a lease that was lost, unless
// that was printed when the command was ended for it.
func (c *campaign) printError(err error) {
	var code *exit.Error
	switch {
	case errors.As(err, &code): // the release has found that the lease is lost: see below
	case errors.Is(err, sqllock.ErrLockLost):
		if c.ended != nil {
			c.printLost(c.ended)
		}
	case !c.failing:
		c.failing = true
		c.printf("campaigning for %q again: %s", c.key, exit.Text(err))
	}
}

// printLost prints that the lease of a command that has ended was lost.
func (c *campaign) printLost(ended *os.ProcessState) {
	c.printf("the lock %q was lost while the command ran; the command ended with %v", c.key, ended)
}

// printLeader prints who leads, for users of --verbose.
func (c *campaign) printLeader(now leader.Leader) {
	switch {
	case now.Me: // term prints it
	case now.Client == "":
		c.verbosef("nobody leads %q", c.key)
	case c.tellsWaits():
		c.printf("waiting for %q, led by %s", c.key, format.Printable(now.Client))
	}
}

// explain converts the result of the elector into one with an exit code.
func (c *campaign) explain(err error) error {
	var ended *exit.Error
	var s signalled
	switch {
	case errors.Is(err, sqllock.ErrLockLost):
		return &exit.Error{Code: exit.LockLost, Err: fmt.Errorf("the lock %q was lost while the command ran", c.key)}
	case errors.As(err, &ended):
		if errors.Is(err, sqllock.ErrDatabase) {
			c.printf("the lock %q was not released; it becomes free when its lease ends", c.key)
		}
		return ended
	case errors.As(err, &s):
		c.verbosef("%v ended the campaign for %q", s.signal, c.key)
		return &exit.Error{Code: 128 + int(s.signal)}
	default:
		return err
	}
}
