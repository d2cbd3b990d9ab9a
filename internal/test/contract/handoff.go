package contract

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// handOffTests are about a row that the callers of one process give to each other.
var handOffTests = []test{
	{"UnlockHandsTheRowToTheNextInLine", func(w *world) {
		r := w.patient(ttl)
		l := w.obtain(r)
		first := w.acquire(l)
		waiting := w.queue(r, 3)
		holder, token, deadline := first.Holder(), first.Token(), first.Deadline()
		w.must(first.Unlock(w.Context()))
		for _, next := range waiting {
			got := <-next
			w.must(got.err)
			same(w, "holder", got.lease.Holder(), holder)
			token = w.higher(got.lease.Token(), token)
			if got.lease.Deadline().Before(deadline) || got.lease.Context().Err() != nil {
				w.Fatalf("deadline %v, %v", got.lease.Deadline(), got.lease.Context().Err())
			}
			w.is(first.Renew(w.Context()), sqllock.ErrNotHeld)
			_, err := w.lock(ttl).TryLock(w.Context())
			w.is(err, sqllock.ErrNotAcquired)
			w.must(got.lease.Unlock(w.Context()))
		}
		next := w.acquire(w.lock(ttl))
		w.higher(next.Token(), token)
		w.must(next.Unlock(w.Context()))
	}},
	{"AWaiterThatGaveUpIsPassedBy", func(w *world) {
		r := w.patient(ttl)
		l := w.obtain(r)
		first := w.acquire(l)
		ctx, cancel := context.WithCancel(w.Context())
		gone := w.waiter(ctx, l)
		w.queued(r, 1)
		next := w.waiter(w.Context(), l)
		w.queued(r, 2)
		cancel()
		w.is((<-gone).err, sqllock.ErrNotAcquired)
		w.must(first.Unlock(w.Context()))
		got := <-next
		w.must(got.err)
		same(w, "holder", got.lease.Holder(), first.Holder())
		w.must(got.lease.Unlock(w.Context()))
		same(w, "rows", len(w.rows(w.process())), 0)
	}},
	{"AShortRestOfALeaseIsRenewedFirst", func(w *world) {
		r := w.patient(moderate)
		l := w.obtain(r)
		first := w.acquire(l)
		waiting := w.queue(r, 1)
		for time.Until(first.Deadline()) > moderate/3 {
			w.pause(short)
		}
		w.must(first.Unlock(w.Context()))
		got := <-waiting[0]
		w.must(got.err)
		same(w, "holder", got.lease.Holder(), first.Holder())
		if left := time.Until(got.lease.Deadline()); left < moderate/3 {
			w.Fatalf("%v left", left)
		}
		w.must(got.lease.Unlock(w.Context()))
	}},
	{"AGuardedRowIsNotHandedOn", func(w *world) {
		r := w.registry(ttl)
		l := w.obtain(r)
		first := w.acquire(l)
		w.must(w.transaction(first))
		waiting := w.queue(r, 1)
		w.must(first.Unlock(w.Context()))
		got := <-waiting[0]
		w.must(got.err)
		if got.lease.Holder() == first.Holder() {
			w.Fatal("a transaction may still have had it pinned")
		}
		w.must(got.lease.Unlock(w.Context()))
	}},
	{"ARowThatWasRenewedForLongerIsNotHandedOn", func(w *world) {
		if w.cell.Layout == dialect.Spring6 {
			return // one time-to-live for all
		}
		r := w.registry(ttl)
		l := w.obtain(r)
		first := w.acquire(l)
		w.must(first.RenewFor(w.Context(), 10*ttl))
		waiting := w.queue(r, 1)
		w.must(first.Unlock(w.Context()))
		got := <-waiting[0]
		w.must(got.err)
		row, _, err := w.process().Peek(w.Context(), "k", ttl)
		w.must(err)
		if got.lease.Holder() == first.Holder() || row.Left > ttl {
			w.Fatalf("the row lasts %v", row.Left)
		}
		w.must(got.lease.Unlock(w.Context()))
	}},
	{"AMinimumHoldIsNotHandedOn", func(w *world) {
		r := w.registry(ttl)
		l := w.obtain(r)
		first := w.acquire(l)
		waiting := w.queue(r, 1)
		w.must(first.UnlockAfter(w.Context(), moderate))
		w.stillWaiting(waiting[0])
		w.granted(waiting[0])
	}},
	{"WithoutHandOffEachAcquires", func(w *world) {
		r, err := sqllock.NewRegistry(w.process(), &sqllock.RegistryOptions{
			TTL: ttl, IdleBetweenTries: 20 * time.Millisecond,
		})
		w.must(err)
		l := w.obtain(r)
		first := w.acquire(l)
		waiting := w.queue(r, 1)
		w.must(first.Unlock(w.Context()))
		got := <-waiting[0]
		w.must(got.err)
		if got.lease.Holder() == first.Holder() {
			w.Fatal("handed on")
		}
		w.must(got.lease.Unlock(w.Context()))
		w.must(r.Close(w.Context()))
	}},
	{"OtherProcessesGetTheirTurn", func(w *world) {
		// A crowd in one process that always has somebody waiting, and a single
		// caller in another.
		r, other := w.registry(ttl), w.lock(ttl)
		ctx, stop := context.WithCancel(w.Context())
		ended := make(chan error, 4)
		for range 4 {
			go func() {
				for {
					err := r.ExecuteLocked(ctx, "k", func(context.Context) error { return nil })
					if err != nil {
						ended <- err
						return
					}
				}
			}()
		}
		for range 3 {
			lease, err := other.TryLockFor(w.Context(), ttl)
			w.must(err)
			w.must(lease.Unlock(w.Context()))
		}
		stop()
		for range 4 {
			if err := <-ended; !errors.Is(err, context.Canceled) {
				w.Error(err)
			}
		}
	}},
}

// patient returns the registry of another process that looks so seldom that others
// must wait long for their turn.
func (w *world) patient(ttl time.Duration) *sqllock.Registry {
	w.Helper()
	r, err := sqllock.NewRegistry(w.process(), &sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: moderate, HandOff: true})
	w.must(err)
	w.Cleanup(func() {
		if err := r.Close(context.Background()); err != nil {
			w.Errorf("close: %v", err)
		}
	})
	return r
}

// queue lets n callers wait in a known order.
func (w *world) queue(r *sqllock.Registry, n int) []chan result {
	w.Helper()
	var waiting []chan result
	for i := range n {
		waiting = append(waiting, w.waiter(w.Context(), w.obtain(r)))
		w.queued(r, i+1)
	}
	return waiting
}

// queued waits until n callers wait for the one lock that r holds.
func (w *world) queued(r *sqllock.Registry, n int) {
	w.Helper()
	for r.Held()[0].Waiting != n {
		w.pause(time.Millisecond)
	}
}

// transaction runs a guarded transaction that does nothing.
func (w *world) transaction(lease *sqllock.Lease) error {
	tx := w.begin(nil)
	if err := lease.Guard(w.Context(), tx); err != nil {
		return err
	}
	return tx.Commit()
}
