package contract

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

func is(err, wanted error) bool {
	if wanted == nil {
		return err == nil
	}
	return errors.Is(err, wanted)
}

// leaseTests are about what a holder is given: a time, and to be told when it is
// over.
var leaseTests = []test{
	{"LockAndUnlockTenTimes", func(w *world) {
		r := w.registry(ttl)
		for range 10 {
			lease, err := w.obtain(r).Lock(w.Context())
			w.must(err)
			w.must(lease.Unlock(w.Context()))
		}
	}},
	{"ATryOnAHeldLockNamesTheHolder", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		_, err := w.lock(ttl).TryLock(w.Context())
		w.is(err, sqllock.ErrNotAcquired)
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Key != "k" || held.Holder != lease.Holder() || held.Left <= ttl/2 {
			w.Fatalf("%+v", held)
		}
	}},
	{"ATryInTheSameProcessNamesTheHolderToo", func(w *world) {
		l := w.lock(ttl)
		lease := w.acquire(l)
		_, err := l.TryLock(w.Context())
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Holder != lease.Holder() || held.Left <= ttl/2 {
			w.Fatalf("%v", err)
		}
	}},
	{"ATryInTheSameProcessTellsHowLongTheRowLasts", func(w *world) {
		r, err := sqllock.NewRegistry(w.process(), &sqllock.RegistryOptions{TTL: ttl})
		w.must(err)
		other, l := w.process(), w.obtain(r)
		began := time.Now()
		lease := w.acquire(l)
		took := time.Since(began) // the holder does not know when in this time the row was written
		before, _, err := other.Peek(w.Context(), "k", ttl)
		w.must(err)
		_, err = l.TryLock(w.Context())
		var held *sqllock.HeldError
		if !errors.As(err, &held) {
			w.Fatal(err)
		}
		after, _, err := other.Peek(w.Context(), "k", ttl)
		w.must(err)
		const rounding = 2 * time.Millisecond // of SQLite's clock
		if held.Left > before.Left+rounding || held.Left < after.Left-took-rounding {
			w.Fatalf("%v left, between %v and %v by the database, acquired in %v", held.Left, before.Left, after.Left, took)
		}
		w.must(lease.Unlock(w.Context()))
	}},
	{"TheDeadlineIsBeforeTheRowExpires", func(w *world) {
		r := w.process()
		registry, err := sqllock.NewRegistry(r, &sqllock.RegistryOptions{TTL: ttl})
		w.must(err)
		lease := w.acquire(w.obtain(registry))
		row, _, err := r.Peek(w.Context(), "k", ttl)
		w.must(err)
		if own := time.Until(lease.Deadline()); own >= row.Left {
			w.Fatalf("own %v, row's %v", own, row.Left)
		}
		w.must(lease.Unlock(w.Context()))
	}},
	{"TheContextEndsWithErrLockLostBeforeAnotherHolds", func(w *world) {
		first := w.acquire(w.lock(moderate))
		second, err := w.lock(moderate).Lock(w.Context())
		w.must(err)
		select {
		case <-first.Context().Done():
		default:
			w.Fatal("two holders")
		}
		w.is(context.Cause(first.Context()), sqllock.ErrLockLost)
		w.is(first.Unlock(w.Context()), sqllock.ErrLockLost)
		w.is(first.Renew(w.Context()), sqllock.ErrLockLost)
		w.must(second.Renew(w.Context()))
		w.must(second.Unlock(w.Context()))
	}},
	{"AStuckHolderLosesToItsOwnProcessToo", func(w *world) {
		l := w.lock(moderate)
		first := w.acquire(l)
		second, err := l.Lock(w.Context())
		w.must(err)
		w.is(context.Cause(first.Context()), sqllock.ErrLockLost)
		w.is(first.Unlock(w.Context()), sqllock.ErrLockLost)
		w.must(second.Unlock(w.Context()))
	}},
	{"UnlockOfARemovedRowTellsTheLoss", func(w *world) {
		r := w.process()
		lease := w.acquire(w.lock(ttl))
		w.deleted(r, "k", lease.Holder(), true) // by force
		w.is(lease.Unlock(w.Context()), sqllock.ErrLockLost)
	}},
	{"RenewOfARemovedRowTellsTheLossAndEndsTheContext", func(w *world) {
		r := w.process()
		lease := w.acquire(w.lock(ttl))
		w.deleted(r, "k", lease.Holder(), true)
		w.is(lease.Renew(w.Context()), sqllock.ErrLockLost)
		w.is(context.Cause(lease.Context()), sqllock.ErrLockLost)
		w.is(lease.Unlock(w.Context()), sqllock.ErrLockLost)
	}},
	{"RenewingKeepsALockFromRivals", func(w *world) {
		lease := w.acquire(w.lock(moderate))
		rival := make(chan error, 1)
		l := w.lock(moderate)
		go func() {
			_, err := l.TryLockFor(w.Context(), 2*moderate)
			rival <- err
		}()
		for {
			select {
			case err := <-rival:
				w.is(err, sqllock.ErrNotAcquired)
				w.must(lease.Unlock(w.Context()))
				return
			default:
				w.must(lease.Renew(w.Context()))
			}
		}
	}},
	{"UnlockAndReentryOfAnExpiredLeaseFailThoughNobodyTookIt", func(w *world) {
		l := w.lock(brief)
		lease := w.acquire(l)
		<-lease.Context().Done()
		_, err := l.Lock(context.WithoutCancel(lease.Context()))
		w.is(err, sqllock.ErrLockLost)
		w.is(lease.Unlock(w.Context()), sqllock.ErrLockLost)
	}},
	{"AfterTheTTLTheNextHoldsAndTheOldCannotTry", func(w *world) {
		first, second := w.lock(moderate), w.lock(moderate)
		lease := w.acquire(first)
		<-lease.Context().Done()
		next, err := second.Lock(w.Context())
		w.must(err)
		_, err = first.TryLock(w.Context())
		w.is(err, sqllock.ErrNotAcquired)
		w.must(next.Unlock(w.Context()))
	}},
	{"AnyGoroutineMayUnlock", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		unlocked := make(chan error)
		go func() { unlocked <- lease.Unlock(w.Context()) }()
		w.must(<-unlocked)
		w.must(w.acquire(w.lock(ttl)).Unlock(w.Context()))
	}},
	{"RenewingManyTimes", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		for range 20 {
			before := lease.Deadline()
			w.must(lease.Renew(w.Context()))
			if !lease.Deadline().After(before) {
				w.Fatal("not renewed")
			}
		}
		w.must(lease.Unlock(w.Context()))
		w.is(lease.Renew(w.Context()), sqllock.ErrNotHeld)
	}},
	{"RenewLockByTheContextThatHolds", func(w *world) {
		r := w.registry(ttl)
		lease := w.acquire(w.obtain(r))
		before := lease.Deadline()
		w.must(r.RenewLock(lease.Context(), "k"))
		if !lease.Deadline().After(before) {
			w.Fatal("not renewed")
		}
		w.is(r.RenewLock(w.Context(), "k"), sqllock.ErrNotHeld)
		w.is(r.RenewLock(lease.Context(), "other"), sqllock.ErrNotHeld)
		w.must(lease.Unlock(w.Context()))
		w.is(r.RenewLock(lease.Context(), "k"), sqllock.ErrNotHeld)
	}},
	{"RenewForLastsLongerThanTheTTL", func(w *world) {
		lease := w.acquire(w.lock(moderate))
		err := lease.RenewFor(w.Context(), ttl)
		if w.cell.Layout == dialect.Spring6 {
			w.is(err, sqllock.ErrInvalid)
			w.must(lease.RenewFor(w.Context(), moderate))
			w.must(lease.Unlock(w.Context()))
			return
		}
		w.must(err)
		_, err = w.lock(moderate).TryLockFor(w.Context(), moderate+short)
		w.is(err, sqllock.ErrNotAcquired)
		w.must(lease.Unlock(w.Context()))
		w.must(w.acquire(w.lock(moderate)).Unlock(w.Context()))
	}},
	{"NothingTakesBackWhatRenewForGave", func(w *world) {
		if w.cell.Layout == dialect.Spring6 {
			return // one time-to-live for all
		}
		r, p := w.registry(moderate), w.process()
		l := w.obtain(r)
		lease := w.acquire(l)
		w.must(r.RenewLockFor(lease.Context(), "k", ttl))
		long := lease.Deadline()
		for what, shorten := range map[string]func() error{
			"Renew":     func() error { return lease.Renew(w.Context()) },
			"RenewFor":  func() error { return lease.RenewFor(w.Context(), sqllock.MinTTL) },
			"RenewLock": func() error { return r.RenewLock(lease.Context(), "k") },
			"re-entry": func() error {
				inner, err := l.Lock(lease.Context())
				return errors.Join(err, inner.Unlock(w.Context()))
			},
			"RenewAll": func() error {
				_, err := p.RenewAll(w.Context(), []sqllock.Ownership{{Key: "k", Holder: lease.Holder()}}, short)
				return err
			},
		} {
			w.must(shorten())
			row, _, err := p.Peek(w.Context(), "k", ttl)
			w.must(err)
			if row.Left <= time.Until(long) || !lease.Deadline().Equal(long) {
				w.Fatalf("%s: the row lasts %v, the lease %v, which had %v", what, row.Left, time.Until(lease.Deadline()), time.Until(long))
			}
		}
		w.is(r.RenewLockFor(w.Context(), "k", ttl), sqllock.ErrNotHeld)
		w.is(lease.RenewFor(w.Context(), sqllock.MinTTL-1), sqllock.ErrInvalid)
		w.must(lease.Unlock(w.Context()))
		w.is(lease.RenewFor(w.Context(), ttl), sqllock.ErrNotHeld)
	}},
	{"AMinimumHoldAfterARenewal", func(w *world) {
		lease := w.acquire(w.lock(moderate))
		if w.cell.Layout == dialect.Spring7 { // else one time-to-live for all
			w.must(lease.RenewFor(w.Context(), ttl))
		}
		const atLeast = ttl / 2 // shorter than what RenewFor gave, and longer than the time-to-live
		w.must(lease.UnlockAfter(w.Context(), atLeast))
		row, ok, err := w.process().Peek(w.Context(), "k", moderate)
		w.must(err)
		if !ok || row.Left <= moderate || row.Left > atLeast {
			w.Fatalf("%+v", row)
		}
		_, err = w.lock(moderate).TryLock(w.Context())
		w.is(err, sqllock.ErrNotAcquired)
	}},
	{"RenewForOfALostLeaseFails", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		w.deleted(w.process(), "k", lease.Holder(), true)
		w.is(lease.RenewFor(w.Context(), ttl), sqllock.ErrLockLost)
		w.is(lease.RenewFor(w.Context(), ttl), sqllock.ErrLockLost)
	}},
	{"AnUnlockedLeaseIsNotHeldThoughAnotherEntryIs", func(w *world) {
		r := w.registry(ttl)
		l := w.obtain(r)
		outer := w.acquire(l)
		inner, err := l.Lock(outer.Context())
		w.must(err)
		within := context.WithoutCancel(inner.Context())
		got, err := r.LeaseFrom(within, "k")
		w.must(err)
		same(w, "lease", got, inner)
		w.must(inner.Unlock(w.Context()))
		w.is(inner.Renew(w.Context()), sqllock.ErrNotHeld)
		w.is(inner.RenewFor(w.Context(), ttl), sqllock.ErrNotHeld)
		w.is(inner.Guard(w.Context(), nil), sqllock.ErrNotHeld)
		got, err = r.LeaseFrom(within, "k") // it is made from the outer lease's
		w.must(err)
		same(w, "lease", got, outer)
		w.must(r.RenewLock(within, "k"))
		w.must(outer.Unlock(w.Context()))
		_, err = r.LeaseFrom(within, "k")
		w.is(err, sqllock.ErrNotHeld)
	}},
	{"LeaseFromTellsWhetherTheCallerIsUnderTheLock", func(w *world) {
		r, other := w.registry(ttl), w.registry(ttl)
		lease := w.acquire(w.obtain(r))
		far, err := other.Obtain("far")
		w.must(err)
		both, err := far.Lock(lease.Context())
		w.must(err)
		for _, of := range []struct {
			registry *sqllock.Registry
			key      string
			want     *sqllock.Lease
		}{{r, "k", lease}, {other, "far", both}, {r, "far", nil}, {other, "k", nil}} {
			got, err := of.registry.LeaseFrom(both.Context(), of.key)
			same(w, of.key, got, of.want)
			if of.want == nil {
				w.is(err, sqllock.ErrNotHeld)
			}
		}
		_, err = r.LeaseFrom(w.Context(), "k")
		w.is(err, sqllock.ErrNotHeld)
		w.deleted(w.process(), "k", lease.Holder(), true)
		w.is(lease.Renew(w.Context()), sqllock.ErrLockLost)
		_, err = r.LeaseFrom(both.Context(), "k")
		w.is(err, sqllock.ErrLockLost)
		_, err = other.LeaseFrom(context.WithoutCancel(both.Context()), "far")
		w.must(err)
		w.must(both.Unlock(w.Context()))
	}},
	{"UnlockIsIdempotent", func(w *world) {
		l := w.lock(ttl)
		first := w.acquire(l)
		w.must(first.Unlock(w.Context()))
		second := w.acquire(l)
		w.must(first.Unlock(w.Context()))
		w.is(first.Renew(w.Context()), sqllock.ErrNotHeld)
		w.must(second.Renew(w.Context()))
		w.must(second.Unlock(w.Context()))
	}},
	{"UnlockWorksAfterTheContextEnded", func(w *world) {
		l := w.lock(ttl)
		ctx, cancel := context.WithCancel(w.Context())
		lease, err := l.Lock(ctx)
		w.must(err)
		cancel()
		w.is(lease.Context().Err(), context.Canceled)
		w.must(lease.Unlock(ctx))
		_, ok, err := w.process().Peek(w.Context(), "k", ttl) // not before the row is gone
		w.must(err)
		same(w, "row", ok, false)
		w.must(w.acquire(w.lock(ttl)).Unlock(w.Context()))
	}},
	{"UnlockEndsTheContext", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		w.must(lease.Context().Err())
		w.must(lease.Unlock(w.Context()))
		w.is(context.Cause(lease.Context()), context.Canceled)
	}},
	{"ReentryByContext", func(w *world) {
		l, rival := w.lock(ttl), w.lock(ttl)
		outer := w.acquire(l)
		inner, err := l.Lock(outer.Context())
		w.must(err)
		third, err := l.TryLock(context.WithoutCancel(inner.Context()))
		w.must(err)
		same(w, "holder", inner.Holder(), outer.Holder())
		w.must(inner.Unlock(w.Context()))
		w.must(third.Unlock(w.Context()))
		w.must(outer.Context().Err())
		_, err = rival.TryLock(w.Context())
		w.is(err, sqllock.ErrNotAcquired)
		w.must(outer.Unlock(w.Context()))
		w.must(w.acquire(rival).Unlock(w.Context()))
	}},
	{"TheRowGoesWithTheLastLeaseWhateverTheOrder", func(w *world) {
		l, rival := w.lock(ttl), w.lock(ttl)
		outer := w.acquire(l)
		inner, err := l.Lock(outer.Context())
		w.must(err)
		w.must(outer.Unlock(w.Context()))
		_, err = rival.TryLock(w.Context())
		w.is(err, sqllock.ErrNotAcquired)
		w.must(inner.Unlock(w.Context()))
		w.must(w.acquire(rival).Unlock(w.Context()))
	}},
	{"ReentryRenews", func(w *world) {
		l := w.lock(ttl)
		outer := w.acquire(l)
		before := outer.Deadline()
		inner, err := l.Lock(outer.Context())
		w.must(err)
		if !outer.Deadline().After(before) {
			w.Fatal("not renewed")
		}
		w.must(inner.Unlock(w.Context()))
		w.must(outer.Unlock(w.Context()))
	}},
	{"ReentryOfALostLeaseIsLost", func(w *world) {
		r := w.process()
		l := w.lock(ttl)
		outer := w.acquire(l)
		w.deleted(r, "k", outer.Holder(), true)
		_, err := l.Lock(context.WithoutCancel(outer.Context()))
		w.is(err, sqllock.ErrLockLost)
		w.is(context.Cause(outer.Context()), sqllock.ErrLockLost)
		w.must(w.acquire(l).Unlock(w.Context()))
	}},
	{"AHeldLockSurvivesTheClearingOfTheCache", func(w *world) {
		r := w.registry(ttl)
		lease := w.acquire(w.obtain(r))
		_, err := r.ExpireUnusedOlderThan(0)
		w.must(err)
		w.must(r.SetCacheCapacity(1))
		for _, l := range []*sqllock.JdbcLock{w.obtain(r), w.lock(ttl)} {
			_, err = l.TryLock(w.Context())
			w.is(err, sqllock.ErrNotAcquired)
		}
		w.must(lease.Renew(w.Context()))
		w.must(lease.Unlock(w.Context()))
		w.must(w.acquire(w.obtain(r)).Unlock(w.Context()))
	}},
	{"ATTLOfItsOwn", func(w *world) {
		l := w.lock(short).WithTTL(ttl)
		lease, err := l.Lock(w.Context())
		if w.cell.Layout == dialect.Spring6 {
			w.is(err, sqllock.ErrInvalid)
			return
		}
		w.must(err)
		rival := w.lock(short)
		_, err = rival.TryLockFor(w.Context(), 2*short)
		w.is(err, sqllock.ErrNotAcquired)
		w.must(lease.Unlock(w.Context()))
		for _, try := range []func() (*sqllock.Lease, error){
			func() (*sqllock.Lease, error) { return l.TryLock(w.Context()) },
			func() (*sqllock.Lease, error) { return l.TryLockFor(w.Context(), ttl) },
		} {
			lease, err := try()
			w.must(err)
			if left := time.Until(lease.Deadline()); left < ttl/2 {
				w.Fatalf("%v left", left)
			}
			w.must(lease.Unlock(w.Context()))
		}
	}},
	{"RenewAndUnlockAtOnce", func(w *world) {
		r := w.process()
		for range 5 {
			lease := w.acquire(w.lock(ttl))
			var renewing sync.WaitGroup
			for range 3 {
				renewing.Go(func() {
					for err := error(nil); err == nil; {
						if err = lease.Renew(w.Context()); err != nil && !errors.Is(err, sqllock.ErrNotHeld) {
							w.Errorf("renew: %v", err)
						}
					}
				})
			}
			w.must(lease.Unlock(w.Context()))
			renewing.Wait()
			w.is(context.Cause(lease.Context()), context.Canceled)
			same(w, "rows", len(w.rows(r)), 0)
		}
	}},
	{"UnlockAfterKeepsTheLockTaken", func(w *world) {
		l := w.lock(ttl)
		sent := time.Now()
		first := w.acquire(l)
		w.must(first.UnlockAfter(w.Context(), moderate))
		_, err := l.TryLock(w.Context()) // its own process neither gets it nor is blocked
		w.is(err, sqllock.ErrNotAcquired)
		second, err := w.lock(ttl).Lock(w.Context())
		w.must(err)
		if after := time.Since(sent); after < moderate-2*time.Millisecond || after > ttl/2 {
			w.Fatalf("free after %v", after)
		}
		w.must(second.Unlock(w.Context()))
	}},
	{"UnlockAfterTheTimeIsUnlock", func(w *world) {
		l := w.lock(ttl)
		w.must(w.acquire(l).UnlockAfter(w.Context(), time.Nanosecond))
		w.must(w.acquire(l).Unlock(w.Context()))
	}},
	{"CloseReleasesAndTells", func(w *world) {
		r := w.registry(ttl)
		l := w.obtain(r)
		lease := w.acquire(l)
		w.must(r.Close(w.Context()))
		w.is(context.Cause(lease.Context()), sqllock.ErrClosed)
		w.is(lease.Unlock(w.Context()), sqllock.ErrClosed)
		_, err := l.Lock(w.Context())
		w.is(err, sqllock.ErrClosed)
		w.must(w.acquire(w.lock(ttl)).Unlock(w.Context()))
	}},
	{"ExecuteLocked", func(w *world) {
		r := w.registry(ttl)
		failure := errors.New("work")
		err := r.ExecuteLocked(w.Context(), "k", func(ctx context.Context) error {
			_, err := w.lock(ttl).TryLock(w.Context())
			w.is(err, sqllock.ErrNotAcquired)
			return errors.Join(failure, r.ExecuteLocked(ctx, "k", func(context.Context) error { return nil }))
		})
		w.is(err, failure)
		lease := w.acquire(w.lock(ttl))
		err = r.ExecuteLockedFor(w.Context(), "k", short, func(context.Context) error { panic("must not run") })
		w.is(err, sqllock.ErrNotAcquired)
		w.must(lease.Unlock(w.Context()))
	}},
	{"ExecuteLockedGivesItsLease", func(w *world) {
		r := w.registry(ttl)
		var token int64
		w.must(r.ExecuteLocked(w.Context(), "k", func(ctx context.Context) error {
			lease, err := r.LeaseFrom(ctx, "k")
			w.must(err)
			same(w, "key", lease.Key(), "k")
			same(w, "context", lease.Context() == ctx, true)
			token = lease.Token()
			return lease.Renew(ctx)
		}))
		next := w.acquire(w.lock(ttl))
		w.higher(next.Token(), token)
		w.must(next.Unlock(w.Context()))
	}},
	{"UnlockInsideExecuteLockedIsTheOnlyOne", func(w *world) {
		r, rival := w.registry(ttl), w.lock(ttl)
		w.must(r.ExecuteLocked(w.Context(), "k", func(ctx context.Context) error {
			lease, err := r.LeaseFrom(ctx, "k")
			w.must(err)
			w.must(lease.Unlock(ctx))
			w.is(context.Cause(ctx), context.Canceled)
			_, err = r.LeaseFrom(ctx, "k")
			w.is(err, sqllock.ErrNotHeld)
			next := w.acquire(rival) // the release that follows does not touch it
			w.Cleanup(func() { w.must(next.Unlock(context.Background())) })
			return nil
		}))
		same(w, "rows", len(w.rows(w.process())), 1)
	}},
	{"AMinimumHoldInsideExecuteLocked", func(w *world) {
		r := w.registry(ttl)
		w.must(r.ExecuteLocked(w.Context(), "k", func(ctx context.Context) error {
			lease, err := r.LeaseFrom(ctx, "k")
			w.must(err)
			return lease.UnlockAfter(ctx, ttl)
		}))
		err := r.ExecuteLockedFor(w.Context(), "k", 0, func(context.Context) error { panic("too soon") })
		w.is(err, sqllock.ErrNotAcquired)
	}},
	{"AReleaseInsideExecuteLockedTellsTheLossOutside", func(w *world) {
		r := w.registry(ttl)
		w.is(r.ExecuteLocked(w.Context(), "k", func(ctx context.Context) error {
			lease, err := r.LeaseFrom(ctx, "k")
			w.must(err)
			w.deleted(w.process(), "k", lease.Holder(), true)
			w.is(lease.Unlock(ctx), sqllock.ErrLockLost)
			return nil
		}), sqllock.ErrLockLost)
	}},
	{"ExecuteLockedReleasesAfterAPanic", func(w *world) {
		func() {
			defer func() { _ = recover() }()
			_ = w.registry(ttl).ExecuteLocked(w.Context(), "k", func(context.Context) error { panic("work") })
		}()
		w.must(w.acquire(w.lock(ttl)).Unlock(w.Context()))
	}},
}
