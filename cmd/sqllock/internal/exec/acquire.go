package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"slices"
	"syscall"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/observe"
)

// signalled is the cause with which a signal ends the wait for a lock.
type signalled struct{ signal syscall.Signal }

func (s signalled) Error() string { return s.signal.String() }

// acquireUnlessSignalled acquires the lock. A signal ends the wait by calling interrupt.
// ctx is the context of the lease.
func (x *execution) acquireUnlessSignalled(ctx context.Context, interrupt context.CancelCauseFunc, signals chan os.Signal) (*holding, error) {
	acquired, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case s := <-signals:
			signal.Stop(signals) // the next one kills
			number, _ := s.(syscall.Signal)
			interrupt(signalled{number})
		case <-acquired:
		}
	}()
	h, err := answered(ctx, answerTimeout, func() (*holding, error) { return x.acquire(ctx) })
	close(acquired)
	<-watched
	if ctx.Err() == nil {
		return h, err
	}
	if err == nil { // both at once
		x.releaseAtOnce(h) //nolint:contextcheck // the lease has the context
		h.close(ctx)
	}
	return nil, context.Cause(ctx)
}

func (x *execution) acquire(ctx context.Context) (*holding, error) {
	h, err := x.open(ctx)
	if err != nil {
		return nil, err
	}
	if err := x.lock(ctx, h); err != nil {
		return nil, errors.Join(x.flags.WithTableHint(h.connection, err), h.connection.Close())
	}
	x.verbosef("acquired %s as %s, %s", x.description(), h.lease.Holder(), tokenText(h.lease))
	return h, nil
}

// open returns a holding that has a registry and no lease.
func (x *execution) open(ctx context.Context) (*holding, error) {
	c, err := x.flags.Connect(ctx)
	if err != nil {
		return nil, err
	}
	x.verbosef("locks are in %s", c.Name)
	h := &holding{connection: c}
	if err := x.register(ctx, h); err != nil {
		return nil, errors.Join(x.flags.WithTableHint(c, err), c.Close())
	}
	return h, nil
}

// register sets the registry of h.
func (x *execution) register(ctx context.Context, h *holding) error {
	x.renewed = make(chan struct{}, 1)
	repository, err := x.flags.Repository(ctx, h.connection, sqllock.RepositoryOptions{ClientID: cmp.Or(x.clientID, clientID()), TTL: x.ttl})
	if err != nil {
		return err
	}
	h.registry, err = sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
		TTL: x.ttl, AutoRenew: !x.noRenew, Application: filepath.Base(x.command[0]), Observers: []*observe.Observer{{Renewal: x.renewals(h), Waiting: x.printWait}},
	})
	return err
}

// lock sets the lease of h.
func (x *execution) lock(ctx context.Context, h *holding) error {
	claim, err := x.claim(h.registry)
	if err != nil {
		return err
	}
	nested := slices.ContainsFunc(x.keys(), runsUnder)
	if (x.tellsWaits() || nested) && (x.waitForever || x.wait > 0) {
		h.lease, err = claim.lockFor(ctx, 0)
		if !errors.Is(err, sqllock.ErrNotAcquired) {
			return err
		}
		x.printWaiting(err)
	}
	h.lease, err = x.waitFor(ctx, claim)
	return err
}

// printWaiting prints which lock exec waits for, and its holder. err is the result of
// the first try. An exec that runs under another one of the same key may wait forever.
func (x *execution) printWaiting(err error) {
	held := &sqllock.HeldError{Key: x.name()}
	errors.As(err, &held)
	if runsUnder(held.Key) {
		x.printf("waiting for %s; this exec runs under a lock of the same key ($%s): if it is this lock, it waits for itself", holderText(held), keysVariable)
		return
	}
	if x.tellsWaits() {
		x.printf("waiting for %s", holderText(held))
	}
}

// tellsWaits reports whether a wait is printed at once: to users who look at a terminal, or have asked for it. Others,
// such as cron, which would send mail, are told when it has become long.
func (x *execution) tellsWaits() bool {
	_, terminal := format.TerminalWidth(x.stderr)
	return x.verbose || terminal
}

// holderText describes the lock and its holder.
func holderText(held *sqllock.HeldError) string {
	if held.Holder == "" {
		return "the lock"
	}
	holder, left := holderName(held.Process.String(), held.Holder), format.Duration(held.Left)
	if (sqllock.Row{Holder: held.Holder}).Kept() {
		return fmt.Sprintf("%q, which stays taken for another %s: %s has finished, and its minimum hold lasts", held.Key, left, holder)
	}
	return fmt.Sprintf("%q, held by %s, whose lease ends in %s unless it is renewed", held.Key, holder, left)
}

// holderName returns the process, if it is known, and the CLIENT_ID of a holder.
func holderName(process, holder string) string {
	if process == "" {
		return format.Printable(holder)
	}
	return fmt.Sprintf("%s (%s)", format.Printable(process), format.Printable(holder))
}

// printWait prints that exec still waits.
func (x *execution) printWait(_ context.Context, e observe.Wait) {
	text, holder := "", holderName(e.Process, e.Holder)
	switch kept := (sqllock.Row{Holder: e.Holder}).Kept(); {
	case kept:
		text = ": " + holder + " has finished, and its minimum hold lasts"
	case e.Holder != "":
		text = ", held by " + holder
	}
	x.printf("still waiting for %q after %s%s", e.Key, format.Duration(e.Waited), text)
}

// waitFor waits as long as the flags allow. If the database stops answering, it returns
// an error soon after that.
func (x *execution) waitFor(ctx context.Context, claim claim) (*sqllock.Lease, error) {
	if x.waitForever {
		return claim.lock(ctx)
	}
	limit, cancel := context.WithTimeout(ctx, max(x.wait, session.OpenTimeout))
	defer cancel()
	return answered(limit, answerTimeout, func() (*sqllock.Lease, error) { return claim.lockFor(ctx, x.wait) })
}

// explain converts the error that ended the wait into one with an exit code. Unless
// --verbose is given, nothing is printed about a lock that is taken, so that cron does
// not send mail about it.
func (x *execution) explain(err error) error {
	var s signalled
	switch {
	case errors.As(err, &s):
		x.verbosef("%v ended the wait for %q", s.signal, x.name())
		return &exit.Error{Code: 128 + int(s.signal)}
	case errors.Is(err, sqllock.ErrNotAcquired):
		x.verbosef("%s", exit.Text(err))
		return &exit.Error{Code: x.conflict}
	default:
		return err
	}
}
