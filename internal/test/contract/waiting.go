package contract

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// waitingTests are about callers that wait for a lock.
var waitingTests = []test{
	inEachCell("LockWaitsForUnlockInAnotherProcess", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		got := f.waiter(f.Context(), f.lock(ttl).Lock)
		f.stillWaiting(got)
		f.must(lease.Unlock(f.Context()))
		f.granted(got)
	}),
	inEachCell("LockTakesOverFromACrashedHolderAfterTheTTL", func(f *fixture) {
		sent := time.Now()
		f.acquireRow(f.process(), "k", ttl) // and crashes
		got := f.waiter(f.Context(), f.obtain(f.longWaiter()).Lock)
		f.stillWaiting(got)
		f.hasten()
		f.granted(got)
		if after := time.Since(sent); f.cell.InBubble != nil && (after < ttl || after > ttl+short) {
			f.Fatalf("taken over after %v", after)
		}
	}),
	once("OfTwoWaitersOneAcquiresAndTheOtherWaits", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		first, second := f.waiter(f.Context(), f.lock(ttl).Lock), f.waiter(f.Context(), f.lock(ttl).Lock)
		f.must(lease.Unlock(f.Context()))
		winner, loser := first, second
		var got result
		select {
		case got = <-first:
		case got = <-second:
			winner, loser = second, first
		}
		f.must(got.err)
		f.stillWaiting(loser)
		winner <- got
		f.granted(winner)
		f.granted(loser)
	}),
	once("ManyWaitersOfOneProcessFindTheReleasesOfAnother", func(f *fixture) {
		// Enough for both kinds of a poll of many. The leases end by Unlock alone.
		const locks = 200
		holder, r := f.registry(ttl), f.registry(ttl)
		leases := make([]*sqllock.Lease, locks)
		got := make(chan error, locks)
		for i := range leases {
			lease := check.Value(holder.TryLock(f.Context(), fmt.Sprint(i)))(f)
			leases[i] = lease
			go func() {
				lease, err := r.Lock(f.Context(), fmt.Sprint(i))
				if err == nil {
					err = lease.Unlock(f.Context())
				}
				got <- err
			}()
		}
		for _, lease := range leases {
			f.must(lease.Unlock(f.Context()))
		}
		for range leases {
			f.must(<-got)
		}
	}),
	once("WaitersOfOneProcessAreServedInOrder", func(f *fixture) {
		r := f.registry(ttl)
		lease := f.acquire(f.obtain(r))
		waiting := f.queueWaiters(r, 2)
		f.stillWaiting(waiting[0])
		f.must(lease.Unlock(f.Context()))
		next := f.leaseOf(waiting[0])
		f.stillWaiting(waiting[1])
		f.must(next.Unlock(f.Context()))
		f.granted(waiting[1])
	}),
	inEachCell("ATimedTryEndsInTime", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		start := time.Now()
		_, err := f.lock(ttl).TryLockFor(f.Context(), short)
		f.is(err, sqllock.ErrNotAcquired)
		if errors.Is(err, context.DeadlineExceeded) {
			f.Fatalf("the caller's context has not ended: %v", err)
		}
		if after := time.Since(start); after < short || after > ttl/2 {
			f.Fatalf("gave up after %v", after)
		}
		f.must(lease.Unlock(f.Context()))
	}),
	inEachCell("ACancelledWaitLeavesNothingBehind", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		l := f.lock(ttl)
		reason := errors.New("changed my mind")
		ctx, cancel := context.WithCancelCause(f.Context())
		first, second := f.waiter(ctx, l.Lock), f.waiter(ctx, l.Lock)
		f.stillWaiting(first)
		cancel(reason)
		for _, got := range []chan result{first, second} {
			r := <-got
			f.is(r.err, sqllock.ErrNotAcquired)
			f.is(r.err, context.Canceled)
			f.is(r.err, reason)
		}
		f.must(lease.Unlock(f.Context()))
		// A cancelled statement may still complete now; then it is undone.
		f.must(check.Value(l.TryLockFor(f.Context(), ttl))(f).Unlock(f.Context()))
	}),
	once("ACancelledCallerMakesNoAttempt", func(f *fixture) {
		ctx, cancel := context.WithCancel(f.Context())
		cancel()
		l := f.lock(ttl)
		f.is(check.ErrorOf(l.Lock(ctx)), context.Canceled)
		f.is(check.ErrorOf(l.TryLock(ctx)), context.Canceled)
		_, ok := f.peek(f.process(), "k")
		equal(f, "row", ok, false)
	}),
	once("CloseEndsTheWait", func(f *fixture) {
		lease := f.acquire(f.lock(ttl))
		r := f.registry(ttl)
		got := f.waiter(f.Context(), f.obtain(r).Lock)
		f.stillWaiting(got)
		f.must(r.Close(f.Context()))
		f.is((<-got).err, sqllock.ErrClosed)
		f.must(lease.Unlock(f.Context()))
	}),
}

type result struct {
	lease *sqllock.Lease
	err   error
}

// waiter calls what locks in a goroutine of its own.
func (f *fixture) waiter(ctx context.Context, lock func(context.Context) (*sqllock.Lease, error)) chan result {
	got := make(chan result, 1)
	go func() {
		lease, err := lock(ctx)
		got <- result{lease, err}
	}()
	return got
}

// stillWaiting checks that a waiter has not acquired the lock after a few polls.
func (f *fixture) stillWaiting(got chan result) {
	f.Helper()
	select {
	case r := <-got:
		f.Fatalf("did not wait: %+v", r)
	case <-time.After(6 * f.cell.idle()):
	}
}

// granted waits until a waiter has acquired the lock, and releases it.
func (f *fixture) granted(got chan result) {
	f.Helper()
	f.must(f.leaseOf(got).Unlock(f.Context()))
}

// leaseOf waits until a waiter has acquired the lock.
func (f *fixture) leaseOf(got chan result) *sqllock.Lease {
	f.Helper()
	r := <-got
	return check.Value(r.lease, r.err)(f)
}
