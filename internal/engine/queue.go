package engine

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/waits"
)

// errYield is why the caller of a joint lock lets others pass.
var errYield = errors.New("others may pass")

// A caller of a joint lock keeps some of its keys for a slice of time while it waits for others. Callers that want
// those that it keeps wait meanwhile for keys that are free, so slices are short. The first has no length.
// Each one that was too short is followed by one that is twice as long, up to longestSlice.
//
// Short slices suffice, because the caller queues at each key once. Where it has been the first, and has let
// others pass, it is the next: see [waiter.served]. So it then waits for one holder and for no queue.
const (
	shortestSlice = 100 * time.Millisecond
	longestSlice  = 2 * time.Second
)

// A waiter is a call that locks, until it has the row or gives up.
type waiter struct {
	*Locks

	hold    *hold
	once    bool          // it tries once and does not wait
	holders int           // how many it has used up in a row
	since   time.Time     // when it was first in the queue of its process
	waits   *waits.Caller // once it has to wait, if that may be reported
	subscription
	ticket // between the processes

	busy   int           // the key of a joint lock at which its caller queues first
	slice  time.Duration // for how long the caller of a joint lock has kept its keys at last
	served []bool        // at which keys of a joint lock it has been the first in the queue
}

// queue makes the hold own the local mutexes, after a pause if this process has to step back. If it cannot, seen
// describes the owner.
func (w *waiter) queue(ctx context.Context) (seen locktable.Row, err error) {
	h := w.hold
	if h.observed != nil {
		h.observed.noteHolder(h.ownerAt(w.busy).Holder)
	}
	if !w.once && h.entryAt(w.busy).mutex.Owner() != nil {
		w.noteWait(ctx)
	}
	switch {
	case w.once:
		seen, err = w.tryAll()
	case h.isJoint():
		seen, err = w.queueAll(ctx)
	case h.inFront:
		err = h.entry.mutex.LockFirst(ctx, h)
	default:
		err = h.entry.mutex.Lock(ctx, h)
	}
	switch {
	case err == nil:
	case w.once, h.isJoint():
		return seen, err
	default:
		return h.ownerAt(0), err
	}
	h.observed.noteDequeued()
	if w.since.IsZero() {
		w.since = time.Now()
	}
	h.dropIfOver()
	return locktable.Row{}, nil
}

// noteWait notes that the caller waits, for the key at which it queues, so that a long wait is reported. That for the turn at
// a semaphore or a read-write lock is reported with the key of these.
func (w *waiter) noteWait(ctx context.Context) {
	h, i := w.hold, w.busy
	if h.inTurns || w.waits != nil && !h.isJoint() {
		return
	}
	one := h.keyAt(i)
	at := waits.Place{Key: one.key, LockKey: one.lockKey, Seen: func(ctx context.Context) (string, error) { return h.seenAt(ctx, i) }}
	if w.waits == nil {
		w.waits = w.Locks.waits.Begin(ctx, at)
	} else {
		w.waits.Move(at)
	}
}

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
		w.served = make([]bool, h.count())
	}
	if err := w.lockAt(ctx, w.busy); err != nil {
		return h.ownerAt(w.busy), err
	}
	slice, cancel := context.WithTimeout(ctx, w.slice-jitter.N(w.slice/2+1))
	defer cancel()
	first := w.busy
	for i := range h.count() {
		switch err := w.lockInOrder(slice, i, first); {
		case err == nil:
		case ctx.Err() != nil:
			return h.ownerAt(i), ctx.Err()
		default:
			if w.busy = i; slice.Err() != nil { // it was too short
				w.slice = min(max(shortestSlice, 2*w.slice), longestSlice)
			}
			return h.ownerAt(i), errYield
		}
	}
	return locktable.Row{}, nil
}

// tryAll makes the hold own the local mutexes of all its keys, without waiting.
func (w *waiter) tryAll() (seen locktable.Row, err error) {
	for i := range w.hold.count() {
		if !w.hold.entryAt(i).mutex.TryLock(w.hold) {
			return w.hold.ownerAt(i), errHeld
		}
	}
	return locktable.Row{}, nil
}

// lockInOrder is lockAt for a caller that has the mutex at first already. It refuses to wait for a joint
// lock against the order of the keys.
func (w *waiter) lockInOrder(ctx context.Context, i, first int) error {
	if owner := w.hold.entryAt(i).mutex.Owner(); i < first && owner != nil && owner != w.hold && owner.isJoint() {
		return errYield
	}
	return w.lockAt(ctx, i)
}

// lockAt makes the hold own the local mutex of its i-th key, unless it does.
func (w *waiter) lockAt(ctx context.Context, i int) (err error) {
	m, h := &w.hold.entryAt(i).mutex, w.hold
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

// errHeld ends a single try that found the lock held.
var errHeld = errors.New("held")
