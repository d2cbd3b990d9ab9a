package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/sqllock/sqllock"
)

// keyVariable is the variable by which a command knows its lock.
const keyVariable = "SQLLOCK_KEY"

// A holding is a lock that was acquired, and what it stands on.
type holding struct {
	connection *connection
	registry   *sqllock.Registry
	lease      *sqllock.Lease
}

// A signalled is the cause with which a signal ends the wait for a lock.
type signalled struct{ signal syscall.Signal }

func (s signalled) Error() string { return s.signal.String() }

// acquireUnlessSignalled acquires the lock; a signal ends the wait through
// interrupt. The lease lives on under ctx.
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
	h, err := answered(ctx, patience, func() (*holding, error) { return x.acquire(ctx) })
	close(acquired)
	<-watched
	if ctx.Err() == nil {
		return h, err
	}
	if err == nil { // both at once
		x.release(h.lease, 0) //nolint:contextcheck // the lease has the context
		h.close(ctx)
	}
	return nil, context.Cause(ctx)
}

func (x *execution) acquire(ctx context.Context) (*holding, error) {
	c, err := x.g.connect(ctx)
	if err != nil {
		return nil, err
	}
	h := &holding{connection: c}
	if err := x.lock(ctx, h); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	x.mention("acquired %q as %s, fencing token %d", x.key, h.lease.Holder(), h.lease.Token())
	return h, nil
}

// lock completes h.
func (x *execution) lock(ctx context.Context, h *holding) error {
	repository, err := x.g.repository(h.connection, sqllock.RepositoryOptions{ClientID: clientID()}) //nolint:contextcheck // NewRepository takes none
	if err != nil {
		return err
	}
	h.registry, err = sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
		TTL: x.ttl, AutoRenew: !x.noRenew, OnRenewal: x.renewals(h),
	})
	if err != nil {
		return err
	}
	lock, err := h.registry.Obtain(x.key)
	if err != nil {
		return err
	}
	nested := os.Getenv(keyVariable) == x.key
	if (x.verbose || nested) && (x.waitForEver || x.wait > 0) {
		h.lease, err = lock.TryLock(ctx)
		if !errors.Is(err, sqllock.ErrNotAcquired) {
			return err
		}
		x.sayWaiting(err, nested)
	}
	h.lease, err = x.waitFor(ctx, lock)
	return err
}

// sayWaiting says for what exec waits, since err was returned. A nested one, that
// is run by the command of another of the same key, may wait for ever.
func (x *execution) sayWaiting(err error, nested bool) {
	if nested {
		x.say("waiting for %s; this exec runs under a lock of the same key ($%s): if it is this lock, it waits for itself", holderText(err), keyVariable)
		return
	}
	x.mention("waiting for %s", holderText(err))
}

// holderText says who has the lock.
func holderText(err error) string {
	var held *sqllock.HeldError
	if !errors.As(err, &held) || held.Holder == "" {
		return "the lock"
	}
	return fmt.Sprintf("%q: held by %s, whose lease has %s left", held.Key, printable(held.Holder), short(held.Left))
}

// waitFor waits as long as the user said. A database that has stopped answering
// is given up for lost soon after.
func (x *execution) waitFor(ctx context.Context, lock *sqllock.JdbcLock) (*sqllock.Lease, error) {
	if x.waitForEver {
		return lock.Lock(ctx)
	}
	limit, cancel := context.WithTimeout(ctx, max(x.wait, connectTimeout))
	defer cancel()
	return answered(limit, patience, func() (*sqllock.Lease, error) { return lock.TryLockFor(ctx, x.wait) })
}

// explain turns what ended the wait into an exit code. Silence about a lock that
// is taken keeps cron from sending mail for it every night.
func (x *execution) explain(err error) error {
	var s signalled
	switch {
	case errors.As(err, &s):
		x.mention("%v ended the wait for %q", s.signal, x.key)
		return &exitError{code: 128 + int(s.signal)}
	case errors.Is(err, sqllock.ErrNotAcquired):
		x.mention("%s", textOf(err))
		return &exitError{code: x.conflict}
	default:
		return err
	}
}

// close gives back what the lease, unlocked before, stood on.
func (h *holding) close(ctx context.Context) {
	// The row of a failed Unlock gets a second chance; it expires anyway.
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_, _ = answered(ctx, 0, func() (struct{}, error) { return struct{}{}, h.registry.Close(ctx) })
	_ = h.connection.Close()
}

// clientID tells people who look at the table which process holds a lock. The
// end of a host's name, where pods have their number, distinguishes more than
// its beginning.
func clientID() string {
	const longest = 16 // of 24; a colon and up to 7 digits follow
	host, _ := os.Hostname()
	host, _, _ = strings.Cut(host, ".")
	host = strings.Map(func(r rune) rune {
		if r == '-' || r == '_' || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' {
			return r
		}
		return -1
	}, host)
	return fmt.Sprintf("%s:%d", host[max(0, len(host)-longest):], os.Getpid())
}
