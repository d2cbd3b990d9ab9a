package contract

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// semaphoreTests are about permits that several processes share, see package semaphore. What depends
// on transactions of the application is in semaphoreGuardTests.
var semaphoreTests = []test{
	inEachCell("NeverMoreHoldersThanPermits", func(f *fixture) {
		const permits = 3
		processes := []*semaphore.Semaphore{f.semaphore(f.registry(ttl), permits), f.semaphore(f.registry(ttl), permits)}
		var held atomic.Int32
		f.inGoroutines(6, func(i int) error {
			want := 1 + i/2%permits
			for range 2 {
				err := processes[i%2].Execute(f.Context(), want, func(context.Context) error {
					if n := held.Add(int32(want)); n > permits {
						return fmt.Errorf("%d permits are held, of %d", n, permits)
					}
					time.Sleep(time.Millisecond) // in a bubble, statements take no time
					held.Add(-int32(want))
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		equal(f, "rows", len(f.rows(f.process())), 0)
	}),
	inEachCell("SeveralPermitsAtOnceAndARefusal", func(f *fixture) {
		one, other := f.semaphore(f.registry(ttl), 3), f.semaphore(f.registry(ttl), 3)
		two := f.permits(one, 2)
		f.checkRefused(check.ErrorOf(other.TryAcquire(f.Context(), 2)), "s", two.Holder())
		third := f.permits(other, 1)
		f.is(check.ErrorOf(one.TryAcquire(f.Context(), 1)), sqllock.ErrNotAcquired)
		holders := check.Value(one.Holders(f.Context()))(f)
		equal(f, "holders", len(holders), 2)
		for _, h := range holders {
			want := map[string]int{two.Holder(): 2, third.Holder(): 1}[h.ID]
			if h.Permits != want || h.Left <= ttl/2 || h.Age > ttl/2 {
				f.Fatalf("%+v, want %d permits", h, want)
			}
		}
		f.must(two.Unlock(f.Context()))
		f.must(third.Unlock(f.Context()))
		all := f.permits(other, 3)
		f.checkHigher(all.Token(), max(two.Token(), third.Token()))
		f.must(all.Unlock(f.Context()))
		equal(f, "rows", len(f.rows(f.process())), 0)
	}),
	inEachCell("PermitsOfACrashedProcessAreFreeAfterTheTTL", func(f *fixture) {
		one, other := f.semaphore(f.registry(ttl), 2), f.semaphore(f.registry(ttl), 2)
		crashed := f.permits(one, 2)
		f.pass()
		next := f.permits(other, 1)
		f.is(crashed.Unlock(f.Context()), sqllock.ErrLockLost)
		f.must(next.Unlock(f.Context()))
	}),
}

// semaphoreGuardTests are the semaphore's share of guardTests.
var semaphoreGuardTests = []test{
	inEachCell("AGuardPinsAllPermitsOfItsLease", func(f *fixture) {
		one, other := f.semaphore(f.registry(ttl), 2), f.semaphore(f.registry(ttl), 2)
		f.guarded(func() *sqllock.Lease { return f.permits(one, 2) }, func(*sqllock.Lease) error { return check.ErrorOf(other.Acquire(f.Context(), 1)) })
	}),
}

// semaphore returns the semaphore of "s" in a process.
func (f *fixture) semaphore(r *sqllock.Registry, permits int) *semaphore.Semaphore {
	f.Helper()
	return check.Value(semaphore.New(r, "s", permits))(f)
}

// permits acquires n permits without waiting, or fails the test.
func (f *fixture) permits(s *semaphore.Semaphore, n int) *sqllock.Lease {
	f.Helper()
	lease := check.Value(s.TryAcquire(f.Context(), n))(f)
	equal(f, "keys", len(lease.Keys()), n)
	return lease
}
