package exec

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/process"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/runs"
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
			process.LetNextKill(signals)
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
		err = x.flags.WithTableHint(h.connection, err)
		if x.recorded && x.isPlain() && ctx.Err() == nil && errors.Is(err, sqllock.ErrNotAcquired) {
			runs.Skip(ctx, h.registry, x.key, 1)
		}
		h.abandon(ctx)
		return nil, err
	}
	x.verbosef("acquired %s as %s, %s", x.description(), h.lease.Holder(), tokenText(h.lease))
	return h, nil
}

// leastWait is how long a database has at least for its connection and the first try, from the start of the program.
// A network may be slower than a short --wait.
const leastWait = 3 * time.Second

// limited returns a context that ends when the lock must be acquired: --wait counts from the start of the
// program. It lasts as long as least after that start, in any case.
func (x *execution) limited(ctx context.Context, least time.Duration) (context.Context, context.CancelFunc) {
	if x.waitForever {
		return context.WithCancel(ctx)
	}
	limit := max(x.wait, least)
	return context.WithDeadlineCause(ctx, x.began.Add(limit), fmt.Errorf("%w: the database has not answered %s after the start", sqllock.ErrDatabase, format.Duration(limit)))
}

// inTime replaces an error that the end of a limited context has caused. That a lock is held is an answer.
func inTime(limited context.Context, err error) error {
	held := errors.Is(err, sqllock.ErrNotAcquired) && !errors.Is(err, context.Canceled)
	if cause := context.Cause(limited); err != nil && !held && errors.Is(cause, sqllock.ErrDatabase) {
		return cause
	}
	return err
}

// open returns a holding that has a registry and no lease.
func (x *execution) open(ctx context.Context) (*holding, error) {
	limited, cancel := x.limited(ctx, leastWait)
	defer cancel()
	x.flags.BriefWaits = true
	c, err := x.flags.Connect(limited)
	if err != nil {
		return nil, inTime(limited, err)
	}
	x.verbosef("locks are in %s", c.Name)
	h := &holding{connection: c}
	if err := x.register(limited, h); err != nil {
		c.Close()
		return nil, inTime(limited, x.flags.WithTableHint(c, err))
	}
	return h, nil
}

// register sets the registry of h.
func (x *execution) register(ctx context.Context, h *holding) error {
	x.renewed = make(chan struct{}, 1)
	opts := sqllock.RepositoryOptions{ClientID: cmp.Or(x.clientID, clientID())}
	if x.ttlGiven {
		opts.TTL = x.ttl
	}
	repository, err := x.repository(ctx, h.connection, opts)
	if err != nil {
		return err
	}
	if !x.ttlGiven && repository.Layout() == dialect.Spring6 {
		x.ttl = sqllock.DefaultTTL // by which Spring, and others that name none, judge the rows
	}
	if x.beforeLock != nil {
		x.beforeLock(repository)
	}
	h.registry, err = sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
		TTL: x.ttl, NoRenew: x.noRenew, WaitThroughOutages: x.waitsThroughOutages,
		DisableNames: x.noNames, Application: filepath.Base(x.command[0]), Observers: []*observe.Observer{{Renewal: x.renewals(h), Waiting: x.printWait}},
	})
	return err
}

// repository inspects the table. While that is locked, which ends a statement after a second on some servers, it
// waits: as long as a command waits for a database that is busy.
func (x *execution) repository(ctx context.Context, c *connect.Connection, opts sqllock.RepositoryOptions) (*sqllock.Repository, error) {
	limited, cancel := context.WithTimeoutCause(ctx, session.OpenTimeout, fmt.Errorf("%w: the table of locks has been locked for %v", sqllock.ErrDatabase, session.OpenTimeout))
	defer cancel()
	for {
		r, err := x.flags.Repository(limited, c, opts)
		if !errors.Is(err, sqllock.ErrPinned) {
			return r, inTime(limited, err)
		}
		if !bounded.Sleep(limited, 50*time.Millisecond) {
			return nil, context.Cause(limited)
		}
	}
}

// lock sets the lease of h.
func (x *execution) lock(ctx context.Context, h *holding) error {
	claim, err := x.claim(h.registry)
	if err != nil {
		return err
	}
	// If the first try fails, exec ends: the cause may be permanent, such as a file that this user may not write to.
	err = x.tryOnce(ctx, h, claim)
	if !errors.Is(err, sqllock.ErrNotAcquired) || !x.waitForever && x.left() <= 0 {
		return err
	}
	x.printWaiting(err)
	h.lease, err = x.waitFor(ctx, claim)
	return err
}

// left returns what is left of the time to wait.
func (x *execution) left() time.Duration { return time.Until(x.began.Add(x.wait)) }

// tryOnce tries to acquire in the time for that, and sets the lease of h.
func (x *execution) tryOnce(ctx context.Context, h *holding, claim claim) error {
	limited, end := x.limited(ctx, leastWait)
	defer end()
	leased, cancel := context.WithCancelCause(ctx) // the context of the lease, which outlasts the try
	stop := context.AfterFunc(limited, func() { cancel(context.Cause(limited)) })
	defer stop()
	lease, err := answered(limited, answerTimeout, func() (*sqllock.Lease, error) { return claim.lockFor(leased, 0) })
	h.lease = lease
	if err == nil && !stop() { // the limit has just ended the lease, too
		x.releaseAtOnce(h) //nolint:contextcheck // the lease has the context
		err = context.Cause(limited)
	}
	return inTime(limited, err)
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
	switch {
	case held.Left <= 0:
		return fmt.Sprintf("%q, which was held by %s: its lease is over, and a transaction may have its row locked", held.Key, holder)
	case (sqllock.Row{Holder: held.Holder}).Kept():
		return fmt.Sprintf("%q, which stays taken for another %s: %s has finished, and its minimum hold lasts", held.Key, left, holder)
	default:
		return fmt.Sprintf("%q, held by %s, whose lease ends in %s unless it is renewed", held.Key, holder, left)
	}
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
	case kept && e.Err != nil: // the lock is free, and its row locked; or the database does not say whether it is
		text = ": " + holder + " has finished"
	case kept:
		text = ": " + holder + " has finished, and its minimum hold lasts"
	case e.Holder != "":
		text = ", held by " + holder
	}
	if e.Err != nil {
		text += ": " + exit.Text(e.Err)
	}
	x.printf("still waiting for %q after %s%s", e.Key, format.Duration(e.Waited), text)
}

// waitFor waits for what is left of the time that the flags allow. If the database stops answering, it
// returns an error soon after that.
func (x *execution) waitFor(ctx context.Context, claim claim) (*sqllock.Lease, error) {
	if x.waitForever {
		return claim.lock(ctx)
	}
	limited, cancel := x.limited(ctx, 0)
	defer cancel()
	return answered(limited, answerTimeout, func() (*sqllock.Lease, error) { return claim.lockFor(ctx, max(x.left(), 0)) })
}

// explain converts the error that ended the wait into one with an exit code. Of a single try that finds the lock taken
// nothing is printed unless --verbose is given, so that cron does not send mail about it.
func (x *execution) explain(err error) error {
	var s signalled
	switch {
	case errors.As(err, &s):
		x.verbosef("%v ended the wait for %q", s.signal, x.name())
		return &exit.Error{Code: 128 + int(s.signal)}
	case errors.Is(err, sqllock.ErrNotAcquired):
		if x.verbose || x.wait > 0 {
			x.printf("%s", exit.Text(err))
		}
		return &exit.Error{Code: x.conflict}
	default:
		return err
	}
}
