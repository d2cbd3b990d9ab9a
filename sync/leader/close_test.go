package leader_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/leader"
)

// TestCloseWhileItSitsOut closes the registry of an elector that has resigned.
func TestCloseWhileItSitsOut(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{SitOut: 30 * time.Minute})
		running := a.start(a.lead)
		<-a.began
		f.Must(a.Resign(f.Context()))
		time.Sleep(ttl)
		began := time.Now()
		f.Must(a.registry.Close(f.Context()))
		f.Is(<-running.result, sqllock.ErrClosed)
		f.Takes("Run", began, 0, leader.DefaultObserveEvery)
	})
}

// TestCloseFromWithin closes the registry in the function.
func TestCloseFromWithin(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{})
		failed := errors.New("failed")
		err := a.Run(f.Context(), func(ctx context.Context, _ *sqllock.Lease) error {
			f.Must(a.registry.Close(f.Context())) //nolint:contextcheck // ctx ends with it
			f.Is(context.Cause(ctx), sqllock.ErrClosed)
			return failed
		})
		f.Is(err, sqllock.ErrClosed)
		f.Is(err, failed)
	})
}

// A fragileContext ends when it is asked for its error after it was broken.
type fragileContext struct {
	context.Context
	cancel context.CancelCauseFunc
	broken atomic.Bool
}

func (c *fragileContext) Err() error {
	if c.broken.Load() {
		c.cancel(errStop)
	}
	return c.Context.Err()
}

// TestTheContextEndsJustAfterAnError has the context of Run end when an attempt has failed.
func TestTheContextEndsJustAfterAnError(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, network := f.networked("a")
		inner, cancel := context.WithCancelCause(f.Context())
		ctx := &fragileContext{Context: inner, cancel: cancel}
		network.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query {
				return nil // a read of the row, to see who leads
			}
			ctx.broken.Store(true)
			return errors.New("failed")
		})
		err := a.Run(ctx, a.lead)
		f.Is(err, errStop)
		f.Is(err, sqllock.ErrDatabase)
		network.Follow(nil)
	})
}

// TestAnErrorUnderALeaseThatWasLost has a function fail when its row is gone, and another may lead
// already, although its context lasts: the election goes on, as after a loss that was noticed.
func TestAnErrorUnderALeaseThatWasLost(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{})
		failed := errors.New("the token is too old")
		a.start(func(ctx context.Context, lease *sqllock.Lease) error {
			a.began <- lease
			if len(a.began) > 1 {
				<-ctx.Done()
				return nil
			}
			_, err := a.registry.Repository().Delete(f.Context(), role, lease.Holder()) //nolint:contextcheck // any will do
			f.Must(err)
			f.Must(ctx.Err())
			return failed
		})
		for len(a.began) < 2 {
			time.Sleep(time.Second)
		}
		if errs := a.newErrors(); len(errs) != 2 || errs[0] != failed || !errors.Is(errs[1], sqllock.ErrLockLost) { //nolint:errorlint // nothing else is in it
			f.Error(errs)
		}
	})
}
