package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/observe"
)

// afterReads calls do with the number of each read of a process, when the process is about to know what
// it has read. Queries in transactions are not counted: they write, and have the file locked.
func afterReads(do func(read int)) flaky.Plan {
	reads, writes := 0, false
	return func(_ context.Context, m flaky.Moment) error {
		switch {
		case m.Op == flaky.Begin:
			writes = true
		case m.Op == flaky.Commit || m.Op == flaky.Rollback:
			writes = false
		case m.Done && !writes:
			reads++
			do(reads)
		}
		return nil
	}
}

// TestOthersAreFaster has another process acquire all permits that this one has read as free.
func TestOthersAreFaster(t *testing.T) {
	inBothLayouts(t, func(f *fixture) {
		registry, network := f.networked()
		a, other := f.semaphore(registry, 3), f.process("other", 3)
		var theirs *sqllock.Lease
		plan := afterReads(func(read int) {
			if read == 1 {
				theirs = f.acquires(other, 3)
			}
		})
		network.Follow(plan)
		f.isHeldBy(check.ErrorOf(a.TryAcquire(f.Context(), 1)), theirs.Holder())
		f.Unlock(theirs)

		network.Follow(afterReads(func(read int) {
			if read == 1 {
				theirs = f.acquires(other, 3)
				time.AfterFunc(time.Second, func() { f.Unlock(theirs) })
			}
		}))
		began := time.Now()
		lease := check.Value(a.Acquire(f.Context(), 2))(f)
		f.Takes("Acquire", began, time.Second, time.Second+longestPoll)
		network.Follow(nil)
		f.Unlock(lease)
		f.has()

		ctx, cancel := context.WithCancel(f.Context())
		network.Follow(afterReads(func(read int) {
			switch read {
			case 1:
				theirs = f.acquires(other, 3)
			case 2:
				cancel()
			}
		}))
		f.Is(check.ErrorOf(a.TryAcquire(ctx, 2)), sqllock.ErrNotAcquired, context.Canceled)
		network.Follow(nil)
		f.Unlock(theirs)
	})
}

// TestFreePermitsTakeNoTurn has as many callers of one process as there are permits, over a database that takes
// its time. None of them locks the turn, and few choose a permit in vain.
func TestFreePermitsTakeNoTurn(t *testing.T) {
	inBubble(t, func(f *fixture) {
		const permits, pairs = 8, 50
		var turns, tries atomic.Int32
		db, network := f.Network()
		s := f.semaphore(f.registryOn(db, "a", sqllock.RegistryOptions{Observers: []*observe.Observer{{
			Acquire: func(ctx context.Context, e observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
				if tries.Add(1); strings.HasSuffix(e.Key, " turn") {
					turns.Add(1)
				}
				return ctx, nil
			},
		}}}), permits)
		network.Follow(func(context.Context, flaky.Moment) error {
			time.Sleep(100 * time.Microsecond)
			return nil
		})
		var working sync.WaitGroup
		for range permits {
			working.Go(func() {
				for range pairs {
					f.Must(check.Value(s.Acquire(f.Context(), 1))(f).Unlock(f.Context()))
				}
			})
		}
		working.Wait()
		network.Follow(nil)
		if n := turns.Load(); n > 0 {
			f.Errorf("the turn was locked %d times", n)
		}
		if n := tries.Load(); n > permits*pairs+permits*permits {
			f.Errorf("%d tries of %d acquisitions", n, permits*pairs)
		}
		f.has()
	})
}

// TestAGuessGivesWay has another process take the turn after this one has found it free: a caller that has locked a
// permit meanwhile releases it, and the next one does not lock any.
func TestAGuessGivesWay(t *testing.T) {
	inBothLayouts(t, func(f *fixture) {
		registry, network := f.networked()
		a, other := f.semaphore(registry, 3), f.registry("other")
		f.Unlock(f.acquires(a, 1))
		turn := check.Value(other.TryLock(f.Context(), turnRow))(f)
		f.isHeldBy(f.refusal(a, 1), turn.Holder())
		f.has(turnRow)
		network.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Begin {
				f.Error("a caller that knows of the turn has begun to write")
			}
			return nil
		})
		f.isHeldBy(f.refusal(a, 1), turn.Holder())
		network.Follow(nil)
		f.Unlock(turn)
		f.Unlock(f.acquires(a, 1))
	})
}

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
// the caller does not wait for that, and gets the lease.
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
		f.Must(w.err)
		f.Must(w.lease.Context().Err())
		network.Follow(nil)
		time.Sleep(time.Second)
		f.Unlock(f.acquires(a, 1))
	})
}

// TestALimitInADeadDatabase has the database answer nothing more from each moment of a call on, which
// returns soon after its limit all the same, and not when the leases that it may have would end.
func TestALimitInADeadDatabase(t *testing.T) {
	t.Parallel()
	check.Long(t)
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
				if !errors.Is(err, sqllock.ErrDatabase) { // there was no answer at all
					f.Is(err, sqllock.ErrNotAcquired)
				}
				f.IsNot(err, context.DeadlineExceeded)
			}
			time.Sleep(ttl) // until the last statement is given up
		})
	}
}
