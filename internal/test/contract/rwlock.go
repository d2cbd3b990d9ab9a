package contract

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// readWriteTests are about many readers or one writer in several processes, see package rwlock. What
// depends on transactions of the application is in readWriteGuardTests.
var readWriteTests = []test{
	inEachCell("ReadersAreBesideEachOtherAndAWriterIsAlone", func(f *fixture) {
		one, other := f.readWrite(f.registry(ttl)), f.readWrite(f.registry(ttl))
		first, second := f.reader(one), f.reader(other)
		_, err := other.TryLock(f.Context())
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Key != "k" || held.Holder != first.Holder() && held.Holder != second.Holder() {
			f.Fatal(err)
		}
		readers, err := one.Readers(f.Context())
		f.must(err)
		equal(f, "readers", len(readers), 2)
		f.must(first.Unlock(f.Context()))
		f.must(second.Unlock(f.Context()))
		writer := f.acquire(one)
		_, err = other.TryLock(f.Context())
		f.checkRefused(err, "k", writer.Holder())
		_, err = other.TryRLock(f.Context())
		f.is(err, sqllock.ErrNotAcquired)
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
		_, err := l.TryRLock(f.Context())
		f.checkRefused(err, "k", lease.Holder())
		f.must(reader.Unlock(f.Context()))
		_, err = l.TryLock(f.Context())
		f.checkRefused(err, "k", lease.Holder())
		f.must(lease.Unlock(f.Context()))
		writer := f.acquire(l)
		_, err = plain.TryLock(f.Context(), "k")
		f.checkRefused(err, "k", writer.Holder())
		f.must(writer.Unlock(f.Context()))
	}),
	inEachCell("AWaitingWriterKeepsNewReadersOut", func(f *fixture) {
		one, other := f.readWrite(f.registry(ttl)), f.readWrite(f.registry(ttl))
		reader := f.reader(one)
		writer, late := make(chan result, 1), make(chan result, 1)
		go func() {
			lease, err := other.Lock(f.Context())
			writer <- result{lease, err}
		}()
		f.untilTaken("k")
		_, err := one.TryRLock(f.Context())
		f.is(err, sqllock.ErrNotAcquired)
		go func() {
			lease, err := one.RLock(f.Context())
			late <- result{lease, err}
		}()
		f.stillWaiting(writer)
		f.must(reader.Unlock(f.Context()))
		got := <-writer
		f.must(got.err)
		f.stillWaiting(late)
		f.must(got.lease.Unlock(f.Context()))
		f.granted(late)
		equal(f, "rows", len(f.rows(f.process())), 0) // the turn's neither
	}),
	inEachCell("ADowngradeLetsReadersInAndNoWriter", func(f *fixture) {
		one, other := f.readWrite(f.registry(ttl)), f.readWrite(f.registry(ttl))
		reader, err := one.Downgrade(f.Context(), f.acquire(one))
		f.must(err)
		f.must(f.reader(other).Unlock(f.Context()))
		_, err = other.TryLock(f.Context())
		f.checkRefused(err, "k", reader.Holder())
		f.must(reader.Unlock(f.Context()))
		f.must(f.acquire(other).Unlock(f.Context()))
	}),
	inEachCell("ReadersAndWritersOfTwoProcesses", func(f *fixture) {
		processes := []*rwlock.Lock{f.readWrite(f.registry(ttl)), f.readWrite(f.registry(ttl))}
		var readers, writers atomic.Int32
		f.inGoroutines(6, func(i int) error {
			l := processes[i%2]
			for range 2 {
				var err error
				if i < 2 {
					err = l.ExecuteLocked(f.Context(), func(context.Context) error {
						defer writers.Add(-1)
						if writers.Add(1) != 1 || readers.Load() != 0 {
							return errors.New("a writer is not alone")
						}
						time.Sleep(time.Millisecond) // in a bubble, statements take no time
						return nil
					})
				} else {
					err = l.ExecuteRLocked(f.Context(), func(context.Context) error {
						defer readers.Add(-1)
						if readers.Add(1); writers.Load() != 0 {
							return errors.New("a reader beside a writer")
						}
						time.Sleep(time.Millisecond)
						return nil
					})
				}
				if err != nil {
					return err
				}
			}
			return nil
		})
		equal(f, "rows", len(f.rows(f.process())), 0)
	}),
}

// readWriteGuardTests are the read-write lock's share of guardTests.
var readWriteGuardTests = []test{
	inEachCell("AWriterWaitsForTheGuardedTransactionOfAReader", func(f *fixture) {
		l, rival := f.readWrite(f.registry(ttl)), f.readWrite(f.registry(ttl))
		f.guarded(func() *sqllock.Lease { return f.reader(l) }, func(*sqllock.Lease) error {
			_, err := rival.Lock(f.Context())
			return err
		})
	}),
	inEachCell("OthersWaitForTheGuardedTransactionOfAWriter", func(f *fixture) {
		l, rival := f.readWrite(f.registry(ttl)), f.readWrite(f.registry(ttl))
		f.guarded(func() *sqllock.Lease { return f.acquire(l) }, func(*sqllock.Lease) error {
			_, err := rival.RLock(f.Context())
			return err
		})
	}),
}

// readWrite returns the read-write lock of "k" in a process.
func (f *fixture) readWrite(r *sqllock.Registry) *rwlock.Lock {
	f.Helper()
	l, err := rwlock.New(r, "k")
	f.must(err)
	return l
}

// reader acquires the read lock without waiting, or fails the test.
func (f *fixture) reader(l *rwlock.Lock) *sqllock.Lease {
	f.Helper()
	lease, err := l.TryRLock(f.Context())
	f.must(err)
	return lease
}

// untilTaken waits until the row of key is there.
func (f *fixture) untilTaken(key string) {
	f.Helper()
	for r := f.process(); ; f.pause(time.Millisecond) {
		_, ok, err := r.Peek(f.Context(), key)
		f.must(err)
		if ok {
			return
		}
	}
}
