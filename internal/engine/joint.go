package engine

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/locktable"
)

// errYield is why the caller of a joint lock lets others pass.
var errYield = errors.New("others may pass")

// A caller of a joint lock keeps some of its keys for a slice of time while it waits for others. Slices are short, because
// callers that want the kept keys wait although these are unused. The first slice has no length; each one that was too
// short is followed by one that is twice as long, up to longestSlice.
//
// Short slices suffice, because the caller queues at each key once. Where it has been the first, and has let
// others pass, it is the next: see [waiter.served]. So it then waits for one holder and for no queue.
const (
	shortestSlice = 100 * time.Millisecond
	longestSlice  = 2 * time.Second
)

// queueAll makes the hold own the local mutexes of all its keys. The caller waits without limit at
// the one at which it waited in vain before, as it has no other then; and until the end of its slice,
// whose length is random, at the others: otherwise callers that hold keys for equally long could stay
// in step.
//
// Callers of joint locks wait for each other in the order of the keys alone: then one of them has what
// it needs. If each waited for what another has, with keys that are free, all would lose their slices.
func (w *waiter) queueAll(ctx context.Context) (seen locktable.Row, err error) {
	h := w.hold
	if w.served == nil {
		w.served = make([]bool, len(h.locals))
	}
	if err := w.lockAt(ctx, w.queuesAt); err != nil {
		return w.ownerAt(w.queuesAt), err
	}
	slice, cancel := context.WithTimeout(ctx, w.slice-jitter.N(w.slice/2+1))
	defer cancel()
	first := w.queuesAt
	for i := range h.locals {
		switch err := w.lockInOrder(slice, i, first); {
		case err == nil:
		case ctx.Err() != nil:
			return w.ownerAt(i), ctx.Err()
		default:
			if w.queuesAt = i; slice.Err() != nil { // it was too short
				w.slice = min(max(shortestSlice, 2*w.slice), longestSlice)
			}
			return w.ownerAt(i), errYield
		}
	}
	return locktable.Row{}, nil
}

// tryAll makes the hold own the local mutexes of all its keys, without waiting.
func (w *waiter) tryAll() (seen locktable.Row, err error) {
	for i, l := range w.hold.locals {
		if !l.mutex.TryLock(w.hold) {
			return w.ownerAt(i), errHeld
		}
	}
	return locktable.Row{}, nil
}

// lockInOrder is lockAt for a caller that has the mutex at first already. It refuses to wait for a joint
// lock against the order of the keys.
func (w *waiter) lockInOrder(ctx context.Context, i, first int) error {
	if owner := w.hold.locals[i].mutex.Owner(); i < first && owner != nil && owner != w.hold && owner.joint {
		return errYield
	}
	return w.lockAt(ctx, i)
}

// lockAt makes the hold own the local mutex of its i-th key, unless it does.
func (w *waiter) lockAt(ctx context.Context, i int) (err error) {
	m, h := &w.hold.locals[i].mutex, w.hold
	if m.Owner() == h {
		return nil
	}
	if !m.TryLock(h) { // which succeeds also if the slice has no length
		lock := m.Lock
		if w.served[i] {
			lock = m.LockFirst
		}
		err = lock(ctx, h)
	}
	w.served[i] = w.served[i] || err == nil
	return err
}

// yield gives up the places of a joint lock's caller at its keys. It returns false if ctx ended.
func (w *waiter) yield(ctx context.Context) bool {
	w.leaveTurn(ctx)
	w.hold.releaseMutexes()
	w.wakeups.unsubscribe()
	return bounded.Sleep(ctx, 1+jitter.N(maxScatter))
}
