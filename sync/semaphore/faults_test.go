package semaphore_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// errGone is what the driver says when the database has gone.
var errGone = errors.New("connection reset by peer")

// TestTheDatabaseIsGone has all statements fail from some moment on.
func TestTheDatabaseIsGone(t *testing.T) {
	inBubble(t, func(f *fixture) {
		registry, network := f.networked()
		a := f.semaphore(registry, 3)
		all := f.acquires(f.process("other", 3).WithAutoRenew(true), 3)
		w := f.starts(a, 1)
		time.Sleep(time.Second)
		f.waits(w)
		network.Follow(func(context.Context, flaky.Moment) error { return errGone })
		<-w.done
		f.Is(w.err, sqllock.ErrDatabase, errGone)
		for _, call := range []func() error{
			func() error { return check.ErrorOf(a.TryAcquire(f.Context(), 1)) },
			func() error { return check.ErrorOf(a.Holders(f.Context())) },
			func() error { return a.Execute(f.Context(), 1, func(context.Context) error { return nil }) },
		} {
			err := call()
			f.Is(err, sqllock.ErrDatabase, errGone)
			f.IsNot(err, sqllock.ErrNotAcquired)
		}
		network.Follow(nil)
		f.Unlock(all)
		lease := check.Value(a.TryAcquireFor(f.Context(), 3, ttl+time.Second))(f) // the turn ends with its time-to-live
		f.Unlock(lease)
	})
}

// TestASlowReleaseOfTheTurn has the release of the turn take longer than the lease of the permits lasts:
// the caller does not get a lease that is over.
func TestASlowReleaseOfTheTurn(t *testing.T) {
	inBubble(t, func(f *fixture) {
		registry, network := f.networked()
		a := f.semaphore(registry, 1).WithTTL(time.Second)
		one := f.acquires(f.process("other", 1), 1)
		w := f.starts(a, 1)
		f.waits(w)
		f.Unlock(one)
		network.Follow(func(context.Context, flaky.Moment) error {
			if len(f.rows()) == 2 { //nolint:contextcheck // the permit and the turn: what follows is the release
				time.Sleep(500 * time.Millisecond)
			}
			return nil
		})
		<-w.done
		f.Is(w.err, sqllock.ErrDatabase)
		f.IsNot(w.err, sqllock.ErrLockLost) // the caller had none
		network.Follow(nil)
		time.Sleep(time.Second)
		f.Unlock(f.acquires(a, 1))
	})
}

// TestALimitInADeadDatabase has the database answer nothing more from each moment of a call on, which
// returns soon after its limit all the same, and not when the leases that it may have would end.
func TestALimitInADeadDatabase(t *testing.T) {
	t.Parallel()
	const limit, moments = time.Second, 60
	for n := range 2 * moments {
		from, permits := 1+n/2, 1+n%2
		bubbles.Again(t, func(f *fixture) {
			registry, network := f.networked()
			a := f.semaphore(registry, permits)
			f.Unlock(f.acquires(a, 1)) // if another one is free, the next call chooses it without reading
			one := f.acquires(f.process("other", permits), 1)
			time.AfterFunc(limit/2, func() { _ = one.Unlock(context.Background()) })
			network.Follow(func(ctx context.Context, m flaky.Moment) error {
				if m.N < from {
					return nil
				}
				<-ctx.Done()
				return ctx.Err()
			})
			began := time.Now()
			lease, err := a.TryAcquireFor(f.Context(), 1, limit)
			f.Takes("TryAcquireFor", began, 0, limit+400*time.Millisecond)
			network.Follow(nil)
			if err == nil {
				f.Unlock(lease)
			} else {
				f.Is(err, sqllock.ErrNotAcquired)
				f.IsNot(err, context.DeadlineExceeded)
			}
			time.Sleep(ttl) // until the last statement is given up
		})
	}
}
