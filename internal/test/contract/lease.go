package contract

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// leaseTests are about a holder's lease: how long it lasts, and how its end is reported.
var leaseTests = []test{
	inEachCell("ATryOnAHeldLockNamesTheHolder", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		_, err := f.lock(ttl).TryLock(f.Context())
		f.is(err, sqllock.ErrNotAcquired)
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Key != "k" || held.Holder != lease.Holder() || held.Left <= ttl/2 {
			f.Fatalf("%+v", held)
		}
	}),
	inEachCell("TheDeadlineIsBeforeTheRowExpires", func(f *fixture) {
		r := f.process()
		registry := check.Value(sqllock.NewRegistry(r, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true}))(f)
		lease := f.acquire(f.obtain(registry))
		row, _ := f.peek(r, "k")
		if own := time.Until(lease.Deadline()); own >= row.Left {
			f.Fatalf("own %v, row's %v", own, row.Left)
		}
		f.must(lease.Unlock(f.Context()))
	}),
	inEachCell("TheContextEndsWithErrLockLostBeforeAnotherHolderAcquires", func(f *fixture) {
		f.withTTL(func(ttl time.Duration) bool {
			first, err := f.lock(ttl).TryLock(f.Context())
			if err != nil && f.cell.InBubble == nil {
				return false
			}
			f.must(err)
			second, err := f.lock(ttl).Lock(f.Context())
			if err != nil && f.cell.InBubble == nil {
				return false
			}
			f.must(err)
			select {
			case <-first.Context().Done():
			default:
				f.Fatal("two holders")
			}
			f.is(context.Cause(first.Context()), sqllock.ErrLockLost)
			f.is(first.Unlock(f.Context()), sqllock.ErrLockLost)
			f.is(first.Renew(f.Context()), sqllock.ErrLockLost)
			_ = second.Unlock(f.Context()) // it may have ended
			return true
		})
	}),
	inVirtualTime("AStuckHolderLosesTheLockToItsOwnProcessToo", func(f *fixture) {
		l := f.lock(ttl)
		first := f.acquire(l)
		second := check.Value(l.Lock(f.Context()))(f)
		f.is(context.Cause(first.Context()), sqllock.ErrLockLost)
		f.is(first.Unlock(f.Context()), sqllock.ErrLockLost)
		f.must(second.Unlock(f.Context()))
	}),
	inEachCell("UnlockOfADeletedRowReturnsErrLockLost", func(f *fixture) {
		r := f.process()
		lease := f.acquire(f.lock(ttl))
		f.checkDeleted(r, "k", lease.Holder(), true) // as `sqllock unlock` does
		f.is(lease.Unlock(f.Context()), sqllock.ErrLockLost)
	}),
	inEachCell("RenewOfADeletedRowReturnsErrLockLostAndEndsTheContext", func(f *fixture) {
		r := f.process()
		lease := f.acquire(f.lock(ttl))
		f.checkDeleted(r, "k", lease.Holder(), true)
		f.is(lease.Renew(f.Context()), sqllock.ErrLockLost)
		f.is(context.Cause(lease.Context()), sqllock.ErrLockLost)
		f.is(lease.Unlock(f.Context()), sqllock.ErrLockLost)
	}),
	inVirtualTime("UnlockAndReentryOfAnExpiredLeaseFailEvenIfTheRowIsStillThere", func(f *fixture) {
		l := f.lock(ttl)
		lease := f.acquire(l)
		<-lease.Context().Done()
		f.is(check.ErrorOf(l.Lock(context.WithoutCancel(lease.Context()))), sqllock.ErrLockLost)
		f.is(lease.Unlock(f.Context()), sqllock.ErrLockLost)
	}),
	inEachCell("AfterTheTTLTheNextWaiterAcquiresAndTheOldHolderCannot", func(f *fixture) {
		first := f.lock(ttl)
		lease := f.acquire(first)
		f.pass()
		next := f.acquire(f.lock(ttl))
		f.is(lease.Renew(f.Context()), sqllock.ErrLockLost)
		f.checkRefused(check.ErrorOf(first.TryLock(f.Context())), "k", next.Holder())
		f.must(next.Unlock(f.Context()))
	}),
	once("ManyRenewals", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		for range 20 {
			before := lease.Deadline()
			f.pause(time.Millisecond)
			f.must(lease.Renew(f.Context()))
			if !lease.Deadline().After(before) {
				f.Fatal("not renewed")
			}
		}
		f.must(lease.Unlock(f.Context()))
		f.is(lease.Renew(f.Context()), sqllock.ErrNotHeld)
	}),
	once("RenewLockWithTheContextOfTheLease", func(f *fixture) {
		r := f.registry(ttl)
		lease := f.acquire(f.obtain(r))
		before := lease.Deadline()
		// real time: for more than the clock's resolution
		f.pause(time.Millisecond)
		f.must(r.RenewLock(lease.Context(), "k"))
		if !lease.Deadline().After(before) {
			f.Fatal("not renewed")
		}
		f.is(r.RenewLock(f.Context(), "k"), sqllock.ErrNotHeld)
		f.is(r.RenewLock(lease.Context(), "other"), sqllock.ErrNotHeld)
		f.must(lease.Unlock(f.Context()))
		f.is(r.RenewLock(lease.Context(), "k"), sqllock.ErrNotHeld)
	}),
	inEachCell("RenewForLastsLongerThanTheTTL", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		err := lease.RenewFor(f.Context(), 10*ttl)
		if f.cell.Layout == dialect.Spring6 {
			f.is(err, sqllock.ErrInvalid)
			f.must(lease.RenewFor(f.Context(), ttl))
			f.must(lease.Unlock(f.Context()))
			return
		}
		f.must(err)
		f.pass()
		f.is(check.ErrorOf(f.lock(ttl).TryLock(f.Context())), sqllock.ErrNotAcquired)
		f.must(lease.Unlock(f.Context()))
		f.must(f.acquire(f.lock(ttl)).Unlock(f.Context()))
	}),
	inEachCell("NothingShortensWhatRenewForHasGranted", func(f *fixture) {
		if f.cell.Layout == dialect.Spring6 {
			return // it has one time-to-live for all rows
		}
		r, p := f.registry(ttl), f.process()
		l := f.obtain(r)
		lease := f.acquire(l)
		f.must(r.RenewLockFor(lease.Context(), "k", 10*ttl))
		long := lease.Deadline()
		for what, shorten := range map[string]func() error{
			"Renew":     func() error { return lease.Renew(f.Context()) },
			"RenewFor":  func() error { return lease.RenewFor(f.Context(), ttl/2) },
			"RenewLock": func() error { return r.RenewLock(lease.Context(), "k") },
			"re-entry": func() error {
				inner, err := l.Lock(lease.Context())
				return errors.Join(err, inner.Unlock(f.Context()))
			},
			"RenewAll": func() error { return check.ErrorOf(f.renewAll([]owned{{Key: "k", Holder: lease.Holder()}}, ttl/2)) },
		} {
			f.must(shorten())
			row, _ := f.peek(p, "k")
			if row.Left <= time.Until(long) || !lease.Deadline().Equal(long) {
				f.Fatalf("%s: the row lasts %v, the lease %v, want at least %v", what, row.Left, time.Until(lease.Deadline()), time.Until(long))
			}
		}
		f.is(r.RenewLockFor(f.Context(), "k", ttl), sqllock.ErrNotHeld)
		// real time: is refused
		f.is(lease.RenewFor(f.Context(), sqllock.MinTTL-1), sqllock.ErrInvalid)
		f.must(lease.Unlock(f.Context()))
		f.is(lease.RenewFor(f.Context(), ttl), sqllock.ErrNotHeld)
	}),
	inEachCell("AMinimumHoldAfterARenewal", func(f *fixture) {
		const minHold = 5 * ttl // shorter than what RenewFor has granted, and longer than the time-to-live
		lease := f.acquire(f.lock(ttl).WithMinHold(minHold))
		if f.cell.Layout == dialect.Spring7 { // Spring6 has one time-to-live for all rows
			f.must(lease.RenewFor(f.Context(), 10*ttl))
		}
		f.must(lease.Unlock(f.Context()))
		row, ok := f.peek(f.process(), "k")
		if !ok || row.Left <= ttl || row.Left > minHold {
			f.Fatalf("%+v", row)
		}
		f.is(check.ErrorOf(f.lock(ttl).TryLock(f.Context())), sqllock.ErrNotAcquired)
	}),
	once("RenewForOfALostLeaseFails", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		f.checkDeleted(f.process(), "k", lease.Holder(), true)
		f.is(lease.RenewFor(f.Context(), ttl), sqllock.ErrLockLost)
		f.is(lease.RenewFor(f.Context(), ttl), sqllock.ErrLockLost)
	}),
	once("AnUnlockedLeaseIsNotHeldEvenIfAnotherEntryIs", func(f *fixture) {
		r := f.registry(ttl)
		l := f.obtain(r)
		outer := f.acquire(l)
		inner := check.Value(l.Lock(outer.Context()))(f)
		within := context.WithoutCancel(inner.Context())
		got := check.Value(r.LeaseFrom(within, "k"))(f)
		equal(f, "lease", got, inner)
		f.must(inner.Unlock(f.Context()))
		f.is(inner.Renew(f.Context()), sqllock.ErrNotHeld)
		f.is(inner.RenewFor(f.Context(), ttl), sqllock.ErrNotHeld)
		f.is(inner.Guard(f.Context(), nil), sqllock.ErrNotHeld)
		got = check.Value(r.LeaseFrom(within, "k"))(f) // its context is derived from the outer lease's
		equal(f, "lease", got, outer)
		f.must(r.RenewLock(within, "k"))
		f.must(outer.Unlock(f.Context()))
		f.is(check.ErrorOf(r.LeaseFrom(within, "k")), sqllock.ErrNotHeld)
	}),
	once("LeaseFromReturnsTheLeaseOfTheContext", func(f *fixture) {
		r, other := f.registry(ttl), f.registry(ttl)
		lease := f.acquire(f.obtain(r))
		far := check.Value(other.Obtain("far"))(f)
		both := check.Value(far.Lock(lease.Context()))(f)
		for _, of := range []struct {
			registry *sqllock.Registry
			key      string
			want     *sqllock.Lease
		}{{r, "k", lease}, {other, "far", both}, {r, "far", nil}, {other, "k", nil}} {
			got, err := of.registry.LeaseFrom(both.Context(), of.key)
			equal(f, of.key, got, of.want)
			if of.want == nil {
				f.is(err, sqllock.ErrNotHeld)
			}
		}
		f.is(check.ErrorOf(r.LeaseFrom(f.Context(), "k")), sqllock.ErrNotHeld)
		f.checkDeleted(f.process(), "k", lease.Holder(), true)
		f.is(lease.Renew(f.Context()), sqllock.ErrLockLost)
		f.is(check.ErrorOf(r.LeaseFrom(both.Context(), "k")), sqllock.ErrLockLost)
		f.must(check.ErrorOf(other.LeaseFrom(context.WithoutCancel(both.Context()), "far")))
		f.must(both.Unlock(f.Context()))
	}),
	once("UnlockIsIdempotent", func(f *fixture) {
		l := f.lock(ttl)
		first := f.acquire(l)
		f.must(first.Unlock(f.Context()))
		second := f.acquire(l)
		f.must(first.Unlock(f.Context()))
		f.is(first.Renew(f.Context()), sqllock.ErrNotHeld)
		f.must(second.Renew(f.Context()))
		f.must(second.Unlock(f.Context()))
	}),
	inEachCell("UnlockWorksAfterTheContextEnded", func(f *fixture) {
		l := f.lock(ttl)
		ctx, cancel := context.WithCancel(f.Context())
		lease := check.Value(l.Lock(ctx))(f)
		cancel()
		f.is(lease.Context().Err(), context.Canceled)
		f.must(lease.Unlock(ctx))
		_, ok := f.peek(f.process(), "k") // Unlock returns after the row was deleted
		equal(f, "row", ok, false)
		f.must(f.acquire(f.lock(ttl)).Unlock(f.Context()))
	}),
	once("ReentryByContext", func(f *fixture) {
		l, rival := f.lock(ttl), f.lock(ttl)
		outer := f.acquire(l)
		inner := check.Value(l.Lock(outer.Context()))(f)
		third := check.Value(l.TryLock(context.WithoutCancel(inner.Context())))(f)
		equal(f, "holder", inner.Holder(), outer.Holder())
		f.must(inner.Unlock(f.Context()))
		f.must(third.Unlock(f.Context()))
		f.must(outer.Context().Err())
		f.is(check.ErrorOf(rival.TryLock(f.Context())), sqllock.ErrNotAcquired)
		f.must(outer.Unlock(f.Context()))
		f.must(f.acquire(rival).Unlock(f.Context()))
	}),
	once("TheLastUnlockDeletesTheRowInAnyOrder", func(f *fixture) {
		l, rival := f.lock(ttl), f.lock(ttl)
		outer := f.acquire(l)
		inner := check.Value(l.Lock(outer.Context()))(f)
		f.must(outer.Unlock(f.Context()))
		f.is(check.ErrorOf(rival.TryLock(f.Context())), sqllock.ErrNotAcquired)
		f.must(inner.Unlock(f.Context()))
		f.must(f.acquire(rival).Unlock(f.Context()))
	}),
	once("ReentryRenews", func(f *fixture) {
		l := f.lock(ttl)
		outer := f.acquire(l)
		before := outer.Deadline()
		// real time: for more than the clock's resolution
		f.pause(time.Millisecond)
		inner := check.Value(l.Lock(outer.Context()))(f)
		if !outer.Deadline().After(before) {
			f.Fatal("not renewed")
		}
		f.must(inner.Unlock(f.Context()))
		f.must(outer.Unlock(f.Context()))
	}),
	once("ReentryOfALostLeaseReturnsErrLockLost", func(f *fixture) {
		r := f.process()
		l := f.lock(ttl)
		outer := f.acquire(l)
		f.checkDeleted(r, "k", outer.Holder(), true)
		f.is(check.ErrorOf(l.Lock(context.WithoutCancel(outer.Context()))), sqllock.ErrLockLost)
		f.is(context.Cause(outer.Context()), sqllock.ErrLockLost)
		f.must(f.acquire(l).Unlock(f.Context()))
	}),
	inEachCell("ALockWithItsOwnTTL", func(f *fixture) {
		l := f.lock(ttl).WithTTL(10 * ttl)
		lease, err := l.Lock(f.Context())
		if f.cell.Layout == dialect.Spring6 {
			f.is(err, sqllock.ErrInvalid)
			return
		}
		f.must(err)
		f.pass()
		f.is(check.ErrorOf(f.lock(ttl).TryLock(f.Context())), sqllock.ErrNotAcquired)
		f.must(lease.Unlock(f.Context()))
		for _, try := range []func() (*sqllock.Lease, error){
			func() (*sqllock.Lease, error) { return l.TryLock(f.Context()) },
			func() (*sqllock.Lease, error) { return l.TryLockFor(f.Context(), ttl) },
		} {
			lease := check.Value(try())(f)
			if left := time.Until(lease.Deadline()); left < 5*ttl {
				f.Fatalf("%v left", left)
			}
			f.must(lease.Unlock(f.Context()))
		}
	}),
	inEachCell("RenewAndUnlockConcurrently", func(f *fixture) {
		r := f.process()
		for range 5 {
			lease := f.acquire(f.lock(ttl))
			var renewing sync.WaitGroup
			for range 3 {
				renewing.Go(func() {
					for err := error(nil); err == nil; {
						if err = lease.Renew(f.Context()); err != nil && !errors.Is(err, sqllock.ErrNotHeld) {
							f.Errorf("renew: %v", err)
						}
					}
				})
			}
			f.must(lease.Unlock(f.Context()))
			renewing.Wait()
			f.is(context.Cause(lease.Context()), context.Canceled)
			equal(f, "rows", len(f.rows(r)), 0)
		}
	}),
	inEachCell("AMinimumHoldKeepsTheLockTaken", func(f *fixture) {
		l := f.lock(ttl).WithMinHold(ttl)
		sent := time.Now()
		first := f.acquire(l)
		f.must(first.Unlock(f.Context()))
		f.must(first.Unlock(f.Context()))                                   // once more, as with defer
		f.is(check.ErrorOf(l.TryLock(f.Context())), sqllock.ErrNotAcquired) // in the same process too, and without blocking
		f.hasten()
		second := check.Value(f.obtain(f.longWaiter()).Lock(f.Context()))(f)
		if after := time.Since(sent); f.cell.InBubble != nil && (after < ttl || after > ttl+short) {
			f.Fatalf("free after %v", after)
		}
		f.must(second.Unlock(f.Context()))
	}),
	once("TheLongestMinimumHoldOfSeveralEntriesCounts", func(f *fixture) {
		for _, holds := range [][2]time.Duration{{2 * ttl, 0}, {0, 2 * ttl}, {2 * ttl, ttl}, {ttl, 2 * ttl}} {
			l := f.obtain(f.registry(ttl))
			outer := f.acquire(l.WithMinHold(holds[0]))
			inner := check.Value(l.WithMinHold(holds[1]).Lock(outer.Context()))(f)
			f.must(outer.Unlock(f.Context()))
			f.must(inner.Unlock(f.Context()))
			row, ok := f.peek(f.process(), "k")
			if !ok || row.Left <= ttl || row.Left > 2*ttl {
				f.Fatalf("%v: %+v", holds, row)
			}
			f.checkDeleted(f.process(), "k", row.Holder, true)
		}
	}),
	inEachCell("CloseKeepsLocksForTheirMinimumHold", func(f *fixture) {
		const minHold = 2 * ttl
		r := f.registry(ttl)
		leases := []*sqllock.Lease{
			f.acquire(f.obtain(r).WithMinHold(minHold)), f.acquire(f.obtainAll(r, "a", "b").WithMinHold(minHold)),
			f.acquire(f.obtainAll(r, "passed").WithMinHold(time.Nanosecond)), f.acquire(f.obtainAll(r, "none")),
		}
		// real time: for more than the clock's resolution
		f.pause(time.Millisecond)
		f.must(r.Close(f.Context()))
		f.is(leases[0].Unlock(f.Context()), sqllock.ErrClosed)
		kept := check.Value(f.process().PeekAll(f.Context(), "k", "a", "b", "passed", "none"))(f)
		equal(f, "rows", len(kept), 3)
		for key, row := range kept {
			if !row.Kept() || row.Holder == leases[0].Holder() || row.Holder == leases[1].Holder() || row.Left <= minHold/2 || row.Left > minHold {
				f.Fatalf("%s: %+v", key, row)
			}
		}
	}),
	inEachCell("ALostLeaseHasNoMinimumHold", func(f *fixture) {
		lease := f.acquire(f.lock(ttl).WithMinHold(10 * ttl))
		f.pass()
		f.is(lease.Unlock(f.Context()), sqllock.ErrLockLost)
		f.must(f.acquire(f.lock(ttl)).Unlock(f.Context()))
	}),
	inEachCell("CloseReleasesTheLockAndEndsTheLease", func(f *fixture) {
		r := f.registry(ttl)
		l := f.obtain(r)
		lease := f.acquire(l)
		f.must(r.Close(f.Context()))
		f.is(context.Cause(lease.Context()), sqllock.ErrClosed)
		f.is(lease.Unlock(f.Context()), sqllock.ErrClosed)
		f.is(check.ErrorOf(l.Lock(f.Context())), sqllock.ErrClosed)
		f.must(f.acquire(f.lock(ttl)).Unlock(f.Context()))
	}),
	once("ExecuteLocked", func(f *fixture) {
		r := f.registry(ttl)
		failure := errors.New("work")
		err := r.ExecuteLocked(f.Context(), "k", func(ctx context.Context) error {
			f.is(check.ErrorOf(f.lock(ttl).TryLock(f.Context())), sqllock.ErrNotAcquired)
			return errors.Join(failure, r.ExecuteLocked(ctx, "k", func(context.Context) error { return nil }))
		})
		f.is(err, failure)
		lease := f.acquire(f.lock(ttl))
		err = f.lock(ttl).ExecuteLockedFor(f.Context(), short, func(context.Context) error { panic("must not run") })
		f.is(err, sqllock.ErrNotAcquired)
		f.must(lease.Unlock(f.Context()))
	}),
	once("ExecuteLockedPassesItsLease", func(f *fixture) {
		r := f.registry(ttl)
		var token int64
		f.must(r.ExecuteLocked(f.Context(), "k", func(ctx context.Context) error {
			lease := check.Value(r.LeaseFrom(ctx, "k"))(f)
			equal(f, "key", lease.Key(), "k")
			equal(f, "context", lease.Context() == ctx, true)
			token = lease.Token()
			return lease.Renew(ctx)
		}))
		next := f.acquire(f.lock(ttl))
		f.checkHigher(next.Token(), token)
		f.must(next.Unlock(f.Context()))
	}),
	once("ExecuteLockedOfAHandleUsesItsSettings", func(f *fixture) {
		r := f.registry(ttl)
		l := f.obtain(r)
		if f.cell.Layout == dialect.Spring7 { // Spring6 has one time-to-live for all rows
			l = l.WithTTL(10 * ttl)
		}
		f.must(l.ExecuteLocked(f.Context(), func(ctx context.Context) error {
			lease := check.Value(r.LeaseFrom(ctx, "k"))(f)
			if left := time.Until(lease.Deadline()); f.cell.Layout == dialect.Spring7 && left < 5*ttl {
				f.Fatalf("%v left", left)
			}
			f.is(f.lock(ttl).ExecuteLockedFor(f.Context(), 0, func(context.Context) error { panic("must not run") }), sqllock.ErrNotAcquired)
			return l.ExecuteLockedFor(ctx, 0, func(context.Context) error { return nil }) // enters again
		}))
		equal(f, "rows", len(f.rows(f.process())), 0)
	}),
	once("TheRegistryLocksByKey", func(f *fixture) {
		r, rival := f.registry(ttl), f.registry(ttl)
		for _, lock := range []func(*sqllock.Registry) (*sqllock.Lease, error){
			func(r *sqllock.Registry) (*sqllock.Lease, error) { return r.Lock(f.Context(), "k") },
			func(r *sqllock.Registry) (*sqllock.Lease, error) { return r.TryLock(f.Context(), "k") },
			func(r *sqllock.Registry) (*sqllock.Lease, error) { return r.TryLockFor(f.Context(), "k", ttl) },
		} {
			lease := check.Value(lock(r))(f)
			equal(f, "key", lease.Key(), "k")
			f.is(check.ErrorOf(rival.TryLock(f.Context(), "k")), sqllock.ErrNotAcquired)
			f.is(check.ErrorOf(rival.TryLockFor(f.Context(), "k", 0)), sqllock.ErrNotAcquired)
			f.must(check.Value(r.Lock(lease.Context(), "k"))(f).Unlock(f.Context()))
			f.must(lease.Unlock(f.Context()))
		}
	}),
	once("UnlockInsideExecuteLockedIsNotRepeated", func(f *fixture) {
		r, rival := f.registry(ttl), f.lock(ttl)
		f.must(r.ExecuteLocked(f.Context(), "k", func(ctx context.Context) error {
			f.must(check.Value(r.LeaseFrom(ctx, "k"))(f).Unlock(ctx))
			f.is(context.Cause(ctx), context.Canceled)
			f.is(check.ErrorOf(r.LeaseFrom(ctx, "k")), sqllock.ErrNotHeld)
			next := f.acquire(rival) // ExecuteLocked's own release does not touch it
			f.Cleanup(func() { f.must(next.Unlock(context.Background())) })
			return nil
		}))
		equal(f, "rows", len(f.rows(f.process())), 1)
	}),
	once("ALossInsideExecuteLockedIsReturned", func(f *fixture) {
		r := f.registry(ttl)
		f.is(r.ExecuteLocked(f.Context(), "k", func(ctx context.Context) error {
			lease := check.Value(r.LeaseFrom(ctx, "k"))(f)
			f.checkDeleted(f.process(), "k", lease.Holder(), true)
			f.is(lease.Unlock(ctx), sqllock.ErrLockLost)
			return nil
		}), sqllock.ErrLockLost)
	}),
	once("ExecuteLockedReleasesAfterAPanic", func(f *fixture) {
		func() {
			defer func() { _ = recover() }()
			_ = f.registry(ttl).ExecuteLocked(f.Context(), "k", func(context.Context) error { panic("work") })
		}()
		f.must(f.acquire(f.lock(ttl)).Unlock(f.Context()))
	}),
}
