package contract

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// jointTests are about several keys as one lock. What depends on time, and on transactions of the application, is in
// jointRenewalTests and jointGuardTests.
var jointTests = []test{
	inEachCell("AJointLockIsAllOrNothing", func(f *fixture) {
		one, other := f.registry(ttl), f.registry(ttl)
		single := f.acquireKey(other, "b")
		lock := f.obtainAll(one, "c", "a", "b")
		f.checkRefused(check.ErrorOf(lock.TryLock(f.Context())), "b", single.Holder())
		f.checkHolders(one, map[string]string{"b": single.Holder()})
		f.must(single.Unlock(f.Context()))
		lease := f.acquire(lock)
		f.checkHolders(other, map[string]string{"a": lease.Holder(), "b": lease.Holder(), "c": lease.Holder()})
		for _, r := range []*sqllock.Registry{one, other} {
			for _, key := range lease.Keys() {
				f.checkRefused(check.ErrorOf(r.TryLock(f.Context(), key)), key, lease.Holder())
			}
			f.checkRefused(check.ErrorOf(f.obtainAll(r, "c", "d").TryLock(f.Context())), "c", lease.Holder())
		}
		f.must(lease.Unlock(f.Context()))
		f.checkHolders(other, nil)
	}),
	inEachCell("TokensRiseBetweenJointAndSingleLocks", func(f *fixture) {
		one, other := f.registry(ttl), f.registry(ttl)
		last := make(map[string]int64)
		for _, keys := range [][]string{{"c"}, {"a", "b"}, {"b", "c"}, {"a"}, {"b"}, {"c", "b", "a"}, {"b"}, {"a", "c"}} {
			lease := f.acquire(f.obtainAll(one, keys...))
			for _, key := range keys {
				last[key] = f.checkHigher(lease.Token(), last[key])
			}
			f.must(lease.Unlock(f.Context()))
			one, other = other, one
		}
	}),
	inEachCell("RenewExtendsAllRowsOfAJointLock", func(f *fixture) {
		r, p := f.registry(ttl), f.process()
		lease := f.acquire(f.obtainAll(r, "a", "b", "c"))
		f.age(ttl / 2)
		before := check.Value(p.PeekAll(f.Context(), "a", "a", "b", "c"))(f) // a key twice is one
		equal(f, "rows", len(before), 3)
		f.must(lease.Renew(f.Context()))
		after := check.Value(p.PeekAll(f.Context(), "a", "b", "c"))(f)
		equal(f, "rows", len(after), 3)
		for key := range after {
			if after[key].Left <= before[key].Left || after[key].Left < time.Until(lease.Deadline()) {
				f.Fatalf("%s: %v left, then %v", key, before[key].Left, after[key].Left)
			}
		}
		f.must(lease.Unlock(f.Context()))
	}),
	inEachCell("AMinimumHoldKeepsAllRowsOfAJointLock", func(f *fixture) {
		lease := f.acquire(f.obtainAll(f.registry(ttl), "a", "b").WithMinHold(2 * ttl))
		f.must(lease.Unlock(f.Context()))
		r := f.registry(ttl)
		rows := check.Value(r.Repository().PeekAll(f.Context(), "a", "b"))(f)
		equal(f, "rows", len(rows), 2)
		for key, row := range rows {
			if row.Holder == lease.Holder() || row.Left <= ttl || row.Left > 2*ttl {
				f.Fatalf("%s: %+v", key, row)
			}
			f.checkRefused(check.ErrorOf(r.TryLock(f.Context(), key)), key, row.Holder)
		}
	}),
	once("ReentryIntoAJointLock", func(f *fixture) {
		r := f.registry(ttl)
		outer := f.acquire(f.obtainAll(r, "a", "b", "c"))
		for _, keys := range [][]string{{"b"}, {"c", "a"}, {"a", "b", "c"}} {
			inner := check.Value(f.obtainAll(r, keys...).Lock(outer.Context()))(f)
			equal(f, "token", inner.Token(), outer.Token())
			f.must(inner.Unlock(f.Context()))
		}
		f.is(check.ErrorOf(f.obtainAll(r, "c", "d").Lock(outer.Context())), sqllock.ErrInvalid)
		f.checkHolders(r, map[string]string{"a": outer.Holder(), "b": outer.Holder(), "c": outer.Holder()})
		f.must(outer.Unlock(f.Context()))
		f.checkHolders(r, nil)
	}),
	inEachCell("AJointLockTakesOverExpiredRowsBesideMissingOnes", func(f *fixture) {
		p := f.process()
		crashed := []string{f.acquireRow(p, "b", ttl), f.acquireRow(p, "d", ttl)}
		f.pass()
		r := f.registry(ttl)
		lease := f.acquire(f.obtainAll(r, "a", "b", "c", "d"))
		if slices.Contains(crashed, lease.Holder()) {
			f.Fatal(lease.Holder())
		}
		all := make(map[string]string)
		for _, key := range lease.Keys() {
			all[key] = lease.Holder()
		}
		f.checkHolders(r, all)
		f.must(lease.Unlock(f.Context()))
	}),
	inEachCell("AJointLeaseIsLostWithOneRow", func(f *fixture) {
		r := f.registry(ttl)
		lease := f.acquire(f.obtainAll(r, "a", "b", "c"))
		f.checkDeleted(f.process(), "b", lease.Holder(), true)
		f.is(lease.Renew(f.Context()), sqllock.ErrLockLost)
		f.is(context.Cause(lease.Context()), sqllock.ErrLockLost)
		f.is(lease.Unlock(f.Context()), sqllock.ErrLockLost)
		f.must(f.acquire(f.obtainAll(r, "c", "b", "a")).Unlock(f.Context())) // which deletes what is left of the lost one
		f.checkHolders(r, nil)
	}),
	inEachCell("UnlockOfAJointLockWithoutOneRowDeletesTheOthers", func(f *fixture) {
		r := f.registry(ttl)
		lease := f.acquire(f.obtainAll(r, "a", "b", "c"))
		f.checkDeleted(f.process(), "b", lease.Holder(), true)
		f.is(lease.Unlock(f.Context()), sqllock.ErrLockLost)
		f.checkHolders(r, nil)
	}),
	inEachCell("CloseReleasesAllRowsOfAJointLock", func(f *fixture) {
		one, other := f.registry(ttl), f.registry(ttl)
		first, second := f.acquire(f.obtainAll(one, "a", "b")), f.acquire(f.obtainAll(other, "c", "d"))
		f.must(one.Close(f.Context()))
		f.is(context.Cause(first.Context()), sqllock.ErrClosed)
		f.is(first.Unlock(f.Context()), sqllock.ErrClosed)
		f.is(check.ErrorOf(one.ObtainAll("a", "b")), sqllock.ErrClosed)
		f.checkHolders(other, map[string]string{"c": second.Holder(), "d": second.Holder()})
		f.must(other.Repository().ReleaseAll(f.Context()))
		f.checkHolders(other, nil)
		f.is(second.Renew(f.Context()), sqllock.ErrLockLost)
	}),
	inEachCell("AThousandKeysAtOnce", func(f *fixture) {
		keys := make([]string, sqllock.MaxKeys)
		for i := range keys {
			keys[i] = fmt.Sprint(i)
		}
		one, other := f.registry(ttl), f.registry(ttl)
		lease := f.acquire(f.obtainAll(one, keys...))
		rows := check.Value(other.Repository().PeekAll(f.Context(), keys...))(f)
		equal(f, "rows", len(rows), len(keys))
		f.is(check.ErrorOf(f.obtainAll(other, keys[500:]...).TryLock(f.Context())), sqllock.ErrNotAcquired)
		f.must(lease.Renew(f.Context()))
		f.must(lease.Unlock(f.Context()))
		f.checkHolders(other, nil)
	}),
	inEachCell("AJointLockWaitsForEachOfItsKeys", func(f *fixture) {
		r := f.registry(ttl)
		leases := []*sqllock.Lease{f.acquireKey(r, "a"), f.acquireKey(r, "b"), f.acquireKey(r, "c")}
		got := f.waiter(f.Context(), f.obtainAll(f.rarelyPolling(), "a", "b", "c").Lock)
		for _, lease := range leases {
			f.stillWaiting(got)
			f.must(lease.Unlock(f.Context()))
		}
		f.granted(got)
	}),
	inEachCell("JointLocksInAllOrdersDoNotDeadlock", func(f *fixture) {
		wants := [][]string{{"a", "b", "c"}, {"c", "b", "a"}, {"b"}, {"c", "a"}}
		tokens := map[string]*int64{"a": new(int64), "b": new(int64), "c": new(int64)} // of the last holders
		registries := []*sqllock.Registry{f.registry(ttl), f.registry(ttl)}
		f.inGoroutines(2*len(wants), func(i int) error {
			r, keys := registries[i%2], wants[i/2]
			lock, err := r.ObtainAll(keys...)
			if err != nil {
				return err
			}
			for range 2 {
				err := lock.ExecuteLocked(f.Context(), func(ctx context.Context) error {
					for _, key := range keys {
						lease, err := r.LeaseFrom(ctx, key)
						if err != nil {
							return err
						}
						last := tokens[key]
						if lease.Token() <= *last {
							return fmt.Errorf("%s: token %d after %d", key, lease.Token(), *last)
						}
						*last = lease.Token() // two holders would be a data race
					}
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		f.checkHolders(registries[0], nil)
	}),
}

// jointRenewalTests are the joint locks' share of renewalTests.
var jointRenewalTests = []test{
	inVirtualTime("AutoRenewKeepsAllRowsOfAJointLock", func(f *fixture) {
		lease := f.acquire(f.obtainAll(f.autoRenewed(), "a", "b"))
		rival := f.longWaiter()
		f.checkRefused(check.ErrorOf(rival.TryLockFor(f.Context(), "a", 3*ttl/2)), "a", lease.Holder())
		f.checkRefused(check.ErrorOf(rival.TryLock(f.Context(), "b")), "b", lease.Holder())
		f.must(lease.Unlock(f.Context()))
	}),
}

// jointGuardTests are the joint locks' share of guardTests.
var jointGuardTests = []test{
	inEachCell("AJointGuardPinsAllRows", func(f *fixture) {
		l, rival := f.obtainAll(f.registry(ttl), "a", "b", "c"), f.registry(ttl)
		var rivals []func(*sqllock.Lease) error
		for _, key := range []string{"a", "b", "c"} {
			rivals = append(rivals, func(*sqllock.Lease) error { return check.ErrorOf(rival.Lock(f.Context(), key)) })
		}
		f.guarded(func() *sqllock.Lease { return f.acquire(l) }, rivals...)
	}),
	inEachCell("APinnedRowDoesNotKeepTheOthersOfAJointLockTaken", func(f *fixture) {
		if f.cell.Dialect == dialect.SQLite() {
			return // the transaction has the whole file
		}
		r := f.registry(ttl)
		_, tx := f.guardBeyond(func() *sqllock.Lease { return f.acquireKey(r, "b") })
		got := f.waiter(f.Context(), f.obtainAll(f.registry(ttl), "a", "b", "c").Lock)
		single := f.registry(ttl)
		for range 5 { // on PostgreSQL an attempt waits for 250 ms
			for _, key := range []string{"a", "c"} {
				f.must(check.Value(single.TryLockFor(f.Context(), key, ttl))(f).Unlock(f.Context()))
			}
		}
		f.stillWaiting(got)
		f.must(tx.commit())
		f.granted(got)
	}),
	inEachCell("AJointGuardWithoutOneRowReturnsErrLockLost", func(f *fixture) {
		lease := f.acquire(f.obtainAll(f.registry(ttl), "a", "b", "c"))
		f.checkDeleted(f.process(), "b", lease.Holder(), true)
		f.checkGuardLost(lease)
	}),
}

func (f *fixture) obtainAll(r *sqllock.Registry, keys ...string) *sqllock.JdbcLock {
	f.Helper()
	return check.Value(r.ObtainAll(keys...))(f)
}

// acquireKey acquires the plain lock of key without waiting, or fails the test.
func (f *fixture) acquireKey(r *sqllock.Registry, key string) *sqllock.Lease {
	f.Helper()
	return check.Value(r.TryLock(f.Context(), key))(f)
}

// rarelyPolling returns the registry of another process. If releases wake waiters up in this cell, it polls so rarely
// that its waiters depend on that.
func (f *fixture) rarelyPolling() *sqllock.Registry {
	f.Helper()
	if f.cell.Waker == nil {
		return f.registry(ttl)
	}
	return f.registryOver(f.process(), sqllock.RegistryOptions{
		NoRenew: true, TTL: ttl, IdleBetweenTries: time.Hour, HandOff: !f.cell.Plain, Fair: f.cell.isFair(), Waker: f.cell.Waker,
	})
}

// checkRefused checks that err says which key was held, and by which holder.
func (f *fixture) checkRefused(err error, key, holder string) {
	f.Helper()
	f.is(err, sqllock.ErrNotAcquired)
	var held *sqllock.HeldError
	if !errors.As(err, &held) || held.Key != key || held.Holder != holder {
		f.Fatalf("%v, want that %s has %q", err, holder, key)
	}
}

// checkHolders checks which keys have rows, and their holders.
func (f *fixture) checkHolders(r *sqllock.Registry, want map[string]string) {
	f.Helper()
	equal(f, "rows", len(f.rows(r.Repository())), len(want))
	for key, holder := range want {
		row, ok := f.peek(r.Repository(), key)
		if !ok || row.Holder != holder {
			f.Fatalf("%s: %+v, want the holder %s", key, row, holder)
		}
	}
}
