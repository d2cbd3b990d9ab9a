package semaphore_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/semaphore"
)

var (
	// errGone is what the driver says when the database has gone.
	errGone = errors.New("connection reset by peer")
	errStop = errors.New("stop")
)

// A situation is one in which a caller acquires some of three permits.
type situation struct {
	name    string
	permits int
	// prepare makes the situation, with the caller's process and another one.
	prepare func(f *fixture, a, other *semaphore.Semaphore)
}

var situations = []situation{
	{"free", 2, func(_ *fixture, _, _ *semaphore.Semaphore) {}},
	{"known to be free", 1, func(f *fixture, a, _ *semaphore.Semaphore) { f.Unlock(f.acquires(a, 1)) }},
	{"taken for a second", 2, func(f *fixture, _, other *semaphore.Semaphore) {
		lease := f.acquires(other, 2)
		time.AfterFunc(time.Second, func() { _ = lease.Unlock(context.Background()) })
	}},
	{"another's turn for a second", 2, func(f *fixture, _, _ *semaphore.Semaphore) {
		turn := f.lockTurn()
		time.AfterFunc(time.Second, func() { _ = turn.Unlock(context.Background()) })
	}},
	{"another's turn for a second, known to be free", 1, func(f *fixture, a, _ *semaphore.Semaphore) {
		f.Unlock(f.acquires(a, 1))
		turn := f.lockTurn()
		time.AfterFunc(time.Second, func() { _ = turn.Unlock(context.Background()) })
	}},
}

// atEachMoment runs a test again and again: each time something happens at another moment of a call that
// acquires, which the test is told, until the call has no such moment.
func atEachMoment(t *testing.T, test func(f *fixture, other *semaphore.Semaphore, s situation, moment flaky.Moment) (reached bool)) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED with -short: a hundred moments")
	}
	for _, s := range situations {
		runInBubble(t, s.name, func(f *fixture) {
			other := f.process("other", 3)
			moments := 0
			for n, reached := 1, true; reached; n++ {
				reached = false
				for _, done := range []bool{false, true} {
					if test(f, other, s, flaky.Moment{N: n, Done: done}) {
						reached = true
						moments++
					}
				}
			}
			if moments < 5 {
				f.Errorf("%d moments", moments)
			}
		})
	}
}

// at returns a plan that calls do at a moment, and whether it has.
func at(moment flaky.Moment, do func() error) (flaky.Plan, *atomic.Bool) {
	var reached atomic.Bool
	return func(_ context.Context, m flaky.Moment) error {
		if m.N != moment.N || m.Done != moment.Done {
			return nil
		}
		reached.Store(true)
		return do()
	}, &reached
}

// TestCancellationLeavesNothing cancels the caller's context at each moment.
func TestCancellationLeavesNothing(t *testing.T) {
	t.Parallel()
	atEachMoment(t, func(f *fixture, other *semaphore.Semaphore, s situation, moment flaky.Moment) bool {
		registry, network := f.networked()
		a := f.semaphore(registry, 3)
		s.prepare(f, a, other)
		ctx, cancel := context.WithCancelCause(f.Context())
		defer cancel(nil)
		plan, reached := at(moment, func() error { cancel(errStop); return nil })
		network.Follow(plan)
		lease, err := a.Acquire(ctx, s.permits)
		network.Follow(nil)
		if err != nil {
			f.Is(err, sqllock.ErrNotAcquired, context.Canceled, errStop)
		} else {
			f.Is(lease.Context().Err(), ctx.Err())
			f.Unlock(lease)
		}
		time.Sleep(2 * time.Second) // others have released, and what was in flight has ended
		f.has()
		f.Unlock(f.acquires(a, 3))
		f.has()
		return reached.Load()
	})
}

// TestAnErrorOfTheDatabase has each statement fail once.
func TestAnErrorOfTheDatabase(t *testing.T) {
	t.Parallel()
	atEachMoment(t, func(f *fixture, other *semaphore.Semaphore, s situation, moment flaky.Moment) bool {
		registry, network := f.networked()
		a := f.semaphore(registry, 3)
		s.prepare(f, a, other)
		plan, reached := at(moment, func() error { return errGone })
		network.Follow(plan)
		lease, err := a.Acquire(f.Context(), s.permits)
		network.Follow(nil)
		if err != nil {
			f.Is(err, sqllock.ErrDatabase, errGone)
			f.IsNot(err, sqllock.ErrNotAcquired)
		} else {
			f.Must(lease.Context().Err())
			f.Unlock(lease)
		}
		// A row whose release has failed is there until its time-to-live ends.
		lease, err = other.TryAcquireFor(f.Context(), 3, ttl+time.Second)
		f.Must(err)
		f.Unlock(lease)
		f.Must(registry.Close(f.Context()))
		f.has()
		return reached.Load()
	})
}

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
			func() error { _, err := a.TryAcquire(f.Context(), 1); return err },
			func() error { _, err := a.Holders(f.Context()); return err },
			func() error { return a.Execute(f.Context(), 1, func(context.Context) error { return nil }) },
		} {
			err := call()
			f.Is(err, sqllock.ErrDatabase, errGone)
			f.IsNot(err, sqllock.ErrNotAcquired)
		}
		network.Follow(nil)
		f.Unlock(all)
		lease, err := a.TryAcquireFor(f.Context(), 3, ttl+time.Second) // the turn ends with its time-to-live
		f.Must(err)
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
