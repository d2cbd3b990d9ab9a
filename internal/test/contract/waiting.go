package contract

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
)

// waitingTests are about those who do not hold the lock yet.
var waitingTests = []test{
	{"LockWaitsForUnlockInAnotherProcess", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		got := w.waiter(w.Context(), w.lock(ttl))
		w.stillWaiting(got)
		w.must(lease.Unlock(w.Context()))
		w.granted(got)
	}},
	{"LockWaitsForUnlockInItsOwnProcess", func(w *world) {
		l := w.lock(ttl)
		lease := w.acquire(l)
		got := w.waiter(w.Context(), l)
		w.stillWaiting(got)
		w.must(lease.Unlock(w.Context()))
		w.granted(got)
	}},
	{"LockTakesOverFromACrashedHolderAfterTheTTL", func(w *world) {
		sent := time.Now()
		w.taken(w.process(), "k", moderate) // and never heard of again
		w.granted(w.waiter(w.Context(), w.lock(moderate)))
		if after := time.Since(sent); after < moderate-2*time.Millisecond {
			w.Fatalf("taken over after %v", after)
		}
	}},
	{"OfTwoWaitersOneGetsTheLockAndTheOtherWaitsOn", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		first, second := w.waiter(w.Context(), w.lock(ttl)), w.waiter(w.Context(), w.lock(ttl))
		w.must(lease.Unlock(w.Context()))
		winner, loser := first, second
		var got result
		select {
		case got = <-first:
		case got = <-second:
			winner, loser = second, first
		}
		w.must(got.err)
		w.stillWaiting(loser)
		winner <- got
		w.granted(winner)
		w.granted(loser)
	}},
	{"WaitersOfOneProcessAreServedInOrder", func(w *world) {
		l := w.lock(ttl)
		lease := w.acquire(l)
		first := w.waiter(w.Context(), l)
		w.stillWaiting(first)
		second := w.waiter(w.Context(), l)
		w.stillWaiting(second)
		w.must(lease.Unlock(w.Context()))
		got := <-first
		w.must(got.err)
		w.stillWaiting(second)
		w.must(got.lease.Unlock(w.Context()))
		w.granted(second)
	}},
	{"ATimedTryEndsInTime", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		start := time.Now()
		_, err := w.lock(ttl).TryLockFor(w.Context(), short)
		w.is(err, sqllock.ErrNotAcquired)
		if errors.Is(err, context.DeadlineExceeded) {
			w.Fatalf("the caller's context has not ended: %v", err)
		}
		if after := time.Since(start); after < short || after > ttl/2 {
			w.Fatalf("gave up after %v", after)
		}
		w.must(lease.Unlock(w.Context()))
	}},
	{"ATimedTryInTheLocalQueueEndsInTime", func(w *world) {
		l := w.lock(ttl)
		lease := w.acquire(l)
		_, err := l.TryLockFor(w.Context(), short)
		w.is(err, sqllock.ErrNotAcquired)
		w.must(lease.Unlock(w.Context()))
	}},
	{"ACancelledWaitLeavesNothingBehind", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		l := w.lock(ttl)
		reason := errors.New("changed my mind")
		ctx, cancel := context.WithCancelCause(w.Context())
		first, second := w.waiter(ctx, l), w.waiter(ctx, l)
		w.stillWaiting(first)
		cancel(reason)
		for _, got := range []chan result{first, second} {
			r := <-got
			w.is(r.err, sqllock.ErrNotAcquired)
			w.is(r.err, context.Canceled)
			w.is(r.err, reason)
		}
		w.must(lease.Unlock(w.Context()))
		// A statement that was cancelled may come to its end now, and be undone.
		next, err := l.TryLockFor(w.Context(), moderate)
		w.must(err)
		w.must(next.Unlock(w.Context()))
	}},
	{"ACancelledCallerMakesNoAttempt", func(w *world) {
		ctx, cancel := context.WithCancel(w.Context())
		cancel()
		l := w.lock(ttl)
		_, err := l.Lock(ctx)
		w.is(err, context.Canceled)
		_, err = l.TryLock(ctx)
		w.is(err, context.Canceled)
		_, ok, err := w.process().Peek(w.Context(), "k", ttl)
		w.must(err)
		same(w, "row", ok, false)
	}},
	{"CloseEndsTheWait", func(w *world) {
		lease := w.acquire(w.lock(ttl))
		r := w.registry(ttl)
		got := w.waiter(w.Context(), w.obtain(r))
		w.stillWaiting(got)
		w.must(r.Close(w.Context()))
		w.is((<-got).err, sqllock.ErrClosed)
		w.must(lease.Unlock(w.Context()))
	}},
}

type result struct {
	lease *sqllock.Lease
	err   error
}

// waiter locks l in the background.
func (w *world) waiter(ctx context.Context, l *sqllock.JdbcLock) chan result {
	got := make(chan result, 1)
	go func() {
		lease, err := l.Lock(ctx)
		got <- result{lease, err}
	}()
	return got
}

// stillWaiting checks that a waiter gets nothing while it has polled a few times.
func (w *world) stillWaiting(got chan result) {
	w.Helper()
	select {
	case r := <-got:
		w.Fatalf("did not wait: %+v", r)
	case <-time.After(short / 2):
	}
}

// granted waits for a waiter's lease and gives it back.
func (w *world) granted(got chan result) {
	w.Helper()
	r := <-got
	w.must(r.err)
	w.must(r.lease.Unlock(w.Context()))
}
