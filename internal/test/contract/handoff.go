package contract

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// handOffTests are about handing the row of a lock from one caller of a process to the next.
var handOffTests = []test{
	inEachCell("UnlockHandsTheRowToTheNextWaiter", func(f *fixture) {
		r := f.slowPolling()
		l := f.obtain(r)
		first := f.acquire(l)
		waiting := f.queueWaiters(r, 3)
		holder, token, deadline := first.Holder(), first.Token(), first.Deadline()
		f.must(first.Unlock(f.Context()))
		for _, next := range waiting {
			lease := f.leaseOf(next)
			equal(f, "holder", lease.Holder(), holder)
			token = f.checkHigher(lease.Token(), token)
			if lease.Deadline().Before(deadline) || lease.Context().Err() != nil {
				f.Fatalf("deadline %v, %v", lease.Deadline(), lease.Context().Err())
			}
			f.is(first.Renew(f.Context()), sqllock.ErrNotHeld)
			f.is(check.ErrorOf(f.lock(ttl).TryLock(f.Context())), sqllock.ErrNotAcquired)
			f.must(lease.Unlock(f.Context()))
		}
		next := f.acquire(f.lock(ttl))
		f.checkHigher(next.Token(), token)
		f.must(next.Unlock(f.Context()))
	}),
	once("AWaiterThatHasGivenUpIsSkipped", func(f *fixture) {
		r := f.slowPolling()
		l := f.obtain(r)
		first := f.acquire(l)
		ctx, cancel := context.WithCancel(f.Context())
		gone := f.waiter(ctx, l.Lock)
		f.waitForQueue(r, 1)
		next := f.waiter(f.Context(), l.Lock)
		f.waitForQueue(r, 2)
		cancel()
		f.is((<-gone).err, sqllock.ErrNotAcquired)
		f.must(first.Unlock(f.Context()))
		lease := f.leaseOf(next)
		equal(f, "holder", lease.Holder(), first.Holder())
		f.must(lease.Unlock(f.Context()))
		equal(f, "rows", len(f.rows(f.process())), 0)
	}),
	inVirtualTime("ALeaseWithLittleTimeLeftIsRenewedFirst", func(f *fixture) {
		r := f.slowPolling()
		l := f.obtain(r)
		first := f.acquire(l)
		waiting := f.queueWaiters(r, 1)
		f.pause(ttl * 3 / 4)
		f.must(first.Unlock(f.Context()))
		lease := f.leaseOf(waiting[0])
		equal(f, "holder", lease.Holder(), first.Holder())
		if left := time.Until(lease.Deadline()); left < ttl/3 {
			f.Fatalf("%v left", left)
		}
		f.must(lease.Unlock(f.Context()))
	}),
	once("AGuardedRowIsNotHandedOn", func(f *fixture) {
		r := f.registry(ttl)
		l := f.obtain(r)
		first := f.acquire(l)
		f.must(f.transaction(first))
		waiting := f.queueWaiters(r, 1)
		f.must(first.Unlock(f.Context()))
		lease := f.leaseOf(waiting[0])
		if lease.Holder() == first.Holder() {
			f.Fatal("the row was handed on, but a transaction may still pin it")
		}
		f.must(lease.Unlock(f.Context()))
	}),
	once("ARowThatWasRenewedForLongerIsNotHandedOn", func(f *fixture) {
		if f.cell.Layout == dialect.Spring6 {
			return // it has one time-to-live for all rows
		}
		r := f.registry(ttl)
		l := f.obtain(r)
		first := f.acquire(l)
		f.must(first.RenewFor(f.Context(), 10*ttl))
		waiting := f.queueWaiters(r, 1)
		f.must(first.Unlock(f.Context()))
		lease := f.leaseOf(waiting[0])
		row, _ := f.peek(f.process(), "k")
		if lease.Holder() == first.Holder() || row.Left > ttl {
			f.Fatalf("the row lasts %v", row.Left)
		}
		f.must(lease.Unlock(f.Context()))
	}),
	once("ARowWithAMinimumHoldIsNotHandedOn", func(f *fixture) {
		r := f.longWaiter()
		first := f.acquire(f.obtain(r).WithMinHold(ttl))
		waiting := f.queueWaiters(r, 1)
		f.must(first.Unlock(f.Context()))
		f.stillWaiting(waiting[0])
		f.hasten()
		f.granted(waiting[0])
	}),
	once("WithoutHandOffEachAcquires", func(f *fixture) {
		r := check.Value(sqllock.NewRegistry(f.process(), &sqllock.RegistryOptions{
			NoRenew: true, TTL: ttl, IdleBetweenTries: f.cell.idle(),
		}))(f)
		l := f.obtain(r)
		first := f.acquire(l)
		waiting := f.queueWaiters(r, 1)
		f.must(first.Unlock(f.Context()))
		lease := f.leaseOf(waiting[0])
		if lease.Holder() == first.Holder() {
			f.Fatal("handed on")
		}
		f.must(lease.Unlock(f.Context()))
		f.must(r.Close(f.Context()))
	}),
}

// slowPolling returns the registry of another process, which polls so rarely that its callers would wait long without
// hand-off.
func (f *fixture) slowPolling() *sqllock.Registry {
	f.Helper()
	return f.registryOver(f.process(), sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: ttl, HandOff: true, NoRenew: true})
}

// queueWaiters starts n callers that wait in a known order.
func (f *fixture) queueWaiters(r *sqllock.Registry, n int) []chan result {
	f.Helper()
	var waiting []chan result
	for i := range n {
		waiting = append(waiting, f.waiter(f.Context(), f.obtain(r).Lock))
		f.waitForQueue(r, i+1)
	}
	return waiting
}

// waitForQueue waits until n callers wait for the only lock that r holds.
func (f *fixture) waitForQueue(r *sqllock.Registry, n int) {
	f.Helper()
	for r.Held()[0].Waiting != n {
		f.pause(time.Millisecond)
	}
}

// transaction runs a guarded transaction that does nothing.
func (f *fixture) transaction(lease *sqllock.Lease) error {
	tx := f.begin(nil)
	if err := tx.guard(f.Context(), lease); err != nil {
		return err
	}
	return tx.commit()
}
