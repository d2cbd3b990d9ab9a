package contract

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// semaphoreTests are about permits that several processes share, see package semaphore. What depends on transactions
// of the application is in semaphoreGuardTests.
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
					// real time: the others try meanwhile: if they are late, the test notices less
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

// readWriteTests are about many readers or one writer in several processes, see package rwlock. What depends on
// transactions of the application is in readWriteGuardTests.
var readWriteTests = []test{
	inEachCell("ReadersAreBesideEachOtherAndAWriterIsAlone", func(f *fixture) {
		one, other := f.readWrite(f.registry(ttl)), f.readWrite(f.registry(ttl))
		first, second := f.reader(one), f.reader(other)
		_, err := other.TryLock(f.Context())
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Key != "k" || held.Holder != first.Holder() && held.Holder != second.Holder() {
			f.Fatal(err)
		}
		readers := check.Value(one.Readers(f.Context()))(f)
		equal(f, "readers", len(readers), 2)
		f.must(first.Unlock(f.Context()))
		f.must(second.Unlock(f.Context()))
		writer := f.acquire(one)
		f.checkRefused(check.ErrorOf(other.TryLock(f.Context())), "k", writer.Holder())
		f.is(check.ErrorOf(other.TryRLock(f.Context())), sqllock.ErrNotAcquired)
		f.must(writer.Unlock(f.Context()))
		next := f.acquire(other)
		f.checkHigher(next.Token(), writer.Token())
		f.must(next.Unlock(f.Context()))
		equal(f, "rows", len(f.rows(f.process())), 0)
	}),
	inEachCell("APlainLockOfTheKeyKeepsOutWritersAndNewReaders", func(f *fixture) {
		l, plain := f.readWrite(f.registry(ttl)), f.registry(ttl)
		reader := f.reader(l)
		lease := f.acquireKey(plain, "k") // it does not wait for readers
		f.checkRefused(check.ErrorOf(l.TryRLock(f.Context())), "k", lease.Holder())
		f.must(reader.Unlock(f.Context()))
		f.checkRefused(check.ErrorOf(l.TryLock(f.Context())), "k", lease.Holder())
		f.must(lease.Unlock(f.Context()))
		writer := f.acquire(l)
		f.checkRefused(check.ErrorOf(plain.TryLock(f.Context(), "k")), "k", writer.Holder())
		f.must(writer.Unlock(f.Context()))
	}),
	inEachCell("ADowngradeLetsReadersInAndNoWriter", func(f *fixture) {
		one, other := f.readWrite(f.registry(ttl)), f.readWrite(f.registry(ttl))
		reader := check.Value(one.Downgrade(f.Context(), f.acquire(one)))(f)
		f.must(f.reader(other).Unlock(f.Context()))
		f.checkRefused(check.ErrorOf(other.TryLock(f.Context())), "k", reader.Holder())
		f.must(reader.Unlock(f.Context()))
		f.must(f.acquire(other).Unlock(f.Context()))
	}),
}

// readWriteGuardTests are the read-write lock's share of guardTests.
var readWriteGuardTests = []test{
	inEachCell("AWriterWaitsForTheGuardedTransactionOfAReader", func(f *fixture) {
		l, rival := f.readWrite(f.registry(ttl)), f.readWrite(f.registry(ttl))
		f.guarded(func() *sqllock.Lease { return f.reader(l) }, func(*sqllock.Lease) error { return check.ErrorOf(rival.Lock(f.Context())) })
	}),
	inEachCell("OthersWaitForTheGuardedTransactionOfAWriter", func(f *fixture) {
		l, rival := f.readWrite(f.registry(ttl)), f.readWrite(f.registry(ttl))
		f.guarded(func() *sqllock.Lease { return f.acquire(l) }, func(*sqllock.Lease) error { return check.ErrorOf(rival.RLock(f.Context())) })
	}),
}

// readWrite returns the read-write lock of "k" in a process.
func (f *fixture) readWrite(r *sqllock.Registry) *rwlock.Lock {
	f.Helper()
	return check.Value(rwlock.New(r, "k"))(f)
}

// reader acquires the read lock without waiting, or fails the test.
func (f *fixture) reader(l *rwlock.Lock) *sqllock.Lease {
	f.Helper()
	return check.Value(l.TryRLock(f.Context()))(f)
}
