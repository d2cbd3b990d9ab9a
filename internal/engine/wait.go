package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/waits"
)

const (
	// maxHolders is how many holders one call of Lock may use up without success: the
	// database answers too late, or it is not known what an attempt has done.
	maxHolders = 3
	// maxScatter limits the random time after an expiry within which all waiters try to
	// acquire the lock. It is short: until then the lock is free and unused.
	maxScatter = 5 * time.Millisecond
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

// What a waiter does next.
type step int

const (
	queueing step = iota // at its keys, behind other callers of this process
	reading              // the row, if that may be taken: a refused attempt costs more; else it may step back
	trying               // to acquire the row, which is free or of which nothing is known
	polling              // the row, which is taken
)

// acquire makes the hold own the local mutexes, and then the row. On errHeld, or when ctx has ended, seen is the
// row when it was last read.
//
//	queueing ──▶ reading ──▶ trying ──▶ (acquired)
//	   ▲            ▲ │        │ ▲
//	   │            │ └────▶ polling     taken; then free, or woken
//	   └ yield      └ sitOut             a joint lock lets others pass; the database fails
func (w *waiter) acquire(ctx context.Context) (seen locktable.Row, err error) {
	h := w.hold
	defer func() {
		if w.waits != nil {
			w.waits.End()
		}
		if w.turn != nil {
			w.leaveTurn(ctx)
		}
		if w.stop != nil {
			w.unsubscribe()
		}
	}()
	for next := queueing; ; {
		switch next {
		case queueing:
			if seen, err = w.queue(ctx); err == nil && h.term.passed > 0 {
				return seen, nil
			}
			next = reading
		case reading:
			if seen, err, next = (locktable.Row{}), nil, trying; !w.mayBeTaken() {
				continue
			}
			if seen, err = w.readRow(ctx); !w.isFree(seen) {
				next = polling
			} else if err == nil && !w.stepBack(ctx) {
				return seen, ctx.Err()
			}
		case trying:
			var acquired bool
			if seen, acquired, err = w.try(ctx); acquired {
				if w.waitThroughOutages {
					h.noteOutage(nil)
				}
				return seen, nil
			}
			next = polling
		case polling:
			if w.once {
				return seen, errHeld
			}
			seen, err = w.poll(ctx, seen)
			next = trying
		}
		switch {
		case err == nil:
		case errors.Is(err, errFreshHolder):
			next = trying
		case errors.Is(err, errYield):
			if !w.yield(ctx) {
				return seen, ctx.Err()
			}
			next = queueing
		case w.outlasts(err) && bounded.Ended(ctx) == nil: // the end of the wait is no outage
			if !w.sitOut(ctx, err) {
				return seen, ctx.Err()
			}
			next = reading
		default:
			return seen, err
		}
	}
}

// queue makes the hold own the local mutexes. If it cannot, seen describes the owner.
func (w *waiter) queue(ctx context.Context) (seen locktable.Row, err error) {
	h := w.hold
	if h.observed != nil {
		h.observed.noteHolder(h.ownerAt(w.busy).Holder)
	}
	switch {
	case w.once:
		seen, err = w.tryAll()
	case h.joint != nil:
		if h.entries[w.busy].mutex.Owner() != nil {
			w.noteWait(ctx)
		}
		seen, err = w.queueAll(ctx)
	case ctx.Err() != nil || !h.entries[0].mutex.TryLock(h):
		seen, err = w.queueOne(ctx)
	}
	if err != nil {
		return seen, err
	}
	if h.observed != nil {
		h.observed.noteDequeued()
	}
	if w.since.IsZero() {
		w.since = time.Now()
	}
	if h.term.passed > 0 {
		h.dropIfOver()
	}
	return locktable.Row{}, nil
}

// queueOne makes the hold own the local mutex of its one key, which another caller had just now, unless ctx has ended.
func (w *waiter) queueOne(ctx context.Context) (seen locktable.Row, err error) {
	h := w.hold
	m := &h.entries[0].mutex
	if m.Owner() != nil {
		w.noteWait(ctx)
	}
	lock := m.Lock
	if h.inFront {
		lock = m.LockFirst
	}
	if err := lock(ctx, h); err != nil {
		return h.ownerAt(0), err
	}
	return locktable.Row{}, nil
}

// noteWait notes that the caller waits, for the key at which it queues, so that a long wait is reported. That for the turn at
// a semaphore or a read-write lock is reported with the key of these.
func (w *waiter) noteWait(ctx context.Context) {
	h, i := w.hold, w.busy
	if h.inTurns || w.waits != nil && h.joint == nil {
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
	for i, e := range w.hold.entries {
		if !e.mutex.TryLock(w.hold) {
			return w.hold.ownerAt(i), errHeld
		}
	}
	return locktable.Row{}, nil
}

// lockInOrder is lockAt for a caller that has the mutex at first already. It refuses to wait for a joint
// lock against the order of the keys.
func (w *waiter) lockInOrder(ctx context.Context, i, first int) error {
	if owner := w.hold.entries[i].mutex.Owner(); i < first && owner != nil && owner != w.hold && owner.isJoint() {
		return errYield
	}
	return w.lockAt(ctx, i)
}

// lockAt makes the hold own the local mutex of its i-th key, unless it does.
func (w *waiter) lockAt(ctx context.Context, i int) (err error) {
	m, h := &w.hold.entries[i].mutex, w.hold
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

// yield gives up the places of a joint lock's caller at its keys. It returns false if ctx ended.
func (w *waiter) yield(ctx context.Context) bool {
	w.leaveTurn(ctx)
	w.hold.releaseMutexes()
	w.unsubscribe()
	return bounded.Sleep(ctx, 1+jitter.N(maxScatter))
}

// sitOut waits before the next try while the database fails. It returns false if ctx ended.
func (w *waiter) sitOut(ctx context.Context, err error) bool {
	h := w.hold
	w.leaveTurn(ctx)
	w.unordered = false // there may be turns again
	outage := h.entries[0].outage.Load().after(err, w.idle)
	h.noteOutage(outage)
	w.noteWait(ctx)
	if !outage.sleep(ctx) {
		return false
	}
	w.renewHolder() // the row of the last attempt may still be deleted
	return true
}

// renewHolder gives the hold another holder, because a row of the one that it had may still be deleted.
func (w *waiter) renewHolder() {
	w.hold.term.holder = w.table.NewHolder()
	w.sweepLater()
}

// outlasts reports whether w tries again after err: an error of the database that may pass.
// Without a lock table no waiting helps.
func (w *waiter) outlasts(err error) bool {
	return w.waitThroughOutages && !w.once && errors.Is(err, failure.ErrDatabase) && !errors.Is(err, failure.ErrSchema)
}

// leaveOutage returns the outage that w, which did not get the lock, has waited in, or nil. It is
// forgotten with the last waiter.
func (w *waiter) leaveOutage() (met *outage) {
	for _, e := range w.hold.entries {
		o := e.outage.Load()
		if o == nil {
			continue
		}
		met = o
		if e.mutex.Owner() == w.hold && e.mutex.Waiters() == 0 {
			e.outage.Store(nil)
		}
	}
	return met
}

// mayBeTaken reports whether the row is to be read before an attempt: if the last one has found it taken and its lease may
// last, if this process would step back for others, which may have the lock by now, and before a single try on MariaDB. A
// refused attempt locks the row until its transaction ends, and costs more round trips. Processes that
// try again and again should not have the row locked most of the time, because its holder has to renew
// it. On MariaDB a refused attempt locks it for two statements and the end of the transaction, so that
// a few dozen processes suffice for that.
func (w *waiter) mayBeTaken() bool {
	now, streaks := time.Now(), false
	for _, e := range w.hold.entries {
		if now.Before(e.takenUntil) {
			return true
		}
		streaks = streaks || e.streak.Load() != nil
	}
	return streaks && w.restOfStepBack() > 0 || w.once && w.table.RefusalsLockRows()
}

// readRow reads the row before an attempt.
func (w *waiter) readRow(ctx context.Context) (locktable.Row, error) {
	h := w.hold
	mayBeSwept := w.once && w.table.HasLeftovers()
	h.noteSent()
	seen, err := w.table.ReadFirst(ctx, h.claim())
	h.observed.notePoll()
	if err != nil {
		return locktable.Row{}, failure.Of(err, h.key)
	}
	w.recordRow(seen)
	if mayBeSwept { // since it was read: an attempt tells
		return locktable.Row{}, nil
	}
	return seen, nil
}

// recordRow notes for how long the row may be taken, as the database has just said.
func (w *waiter) recordRow(seen locktable.Row) {
	h := w.hold
	if w.waitThroughOutages {
		h.noteOutage(nil)
	}
	h.noteAnswered()
	e := h.entries[h.place(seen)]
	e.pinned.Store(nil)
	e.takenUntil = time.Now().Add(min(seen.Left, h.ttl))
	if !w.isFree(seen) {
		e.noteRival(seen.Holder)
	}
	if h.observed != nil {
		h.observed.noteHolder(seen.Holder)
	}
}

// errFreshHolder is why an attempt is made again with another holder.
var errFreshHolder = errors.New("another holder is to try")

// errPinned is reported of a caller that waits for a row whose lease is over, if the server does not say who has it locked.
var errPinned = errors.New("the lease of its row is over, and a transaction may have the row locked")

// whoPins returns an error that names the transaction that has the row of the i-th key locked, or errPinned.
func (h *hold) whoPins(ctx context.Context, i int) error {
	if pin, ok := h.config.table.PinSoon(ctx, h.keyAt(i).lockKey); ok {
		return fmt.Errorf("the lease of its row is over, and its row is %v", pin)
	}
	return errPinned
}

// try makes one attempt to acquire the row. If it does not know what became of it, or the answer came too late, that
// holder's row is deleted, and must not be acquired again by the same holder: try returns errFreshHolder, up to maxHolders
// times in a row.
func (w *waiter) try(ctx context.Context) (seen locktable.Row, acquired bool, err error) {
	h := w.hold
	h.noteSent()
	claim := h.claim()
	if h.fair {
		claim = w.inOrder(claim)
	}
	got, err := w.table.Acquire(ctx, claim)
	if w.once && claim.InOrder != "" && err == nil && !got.Acquired && w.isFree(got.Row) { // to say who holds it
		got.Row, _, err = w.table.Read(ctx, h.claim())
	}
	if got.Acquired {
		h.acquired = got.Sent
	}
	if h.observed != nil {
		h.observed.noteAttempt(got.Batched)
	}
	w.holders++
	switch tooMany := w.holders == maxHolders; {
	case got.Acquired && h.isTooLate():
		h.cleanUp(ctx)
		if !w.once && !tooMany {
			w.renewHolder()
			return locktable.Row{}, false, errFreshHolder
		}
		w.holders = 0
		return locktable.Row{}, false, tooLate(h.key)
	case got.Acquired:
		for _, e := range h.entries {
			e.pinned.Store(nil)
		}
		h.term.token, h.term.since = got.Token, h.acquired
		return locktable.Row{}, true, nil
	case err != nil && locktable.Is(err, locktable.OutcomeUnknown) && !tooMany:
		w.renewHolder()
		return locktable.Row{}, false, errFreshHolder
	}
	w.holders = 0
	if err == nil {
		w.recordRow(got.Row)
		if got.Row.Holder != "" && got.Row.Left < 0 {
			holder := got.Row.Holder // got is allocated otherwise, also for a row that was acquired
			h.entries[h.place(got.Row)].pinned.Store(&holder)
		}
	}
	if claim.InOrder != "" && w.isFree(got.Row) { // others have the turn: it polls where they queue
		got.Row = locktable.Row{LockKey: claim.InOrder}
	}
	if err != nil {
		err = failure.Of(err, h.key)
	}
	return got.Row, false, err
}

// poll waits until the row, which was last seen as given, is free, or the waiter is woken up. Meanwhile the caller of
// a joint lock has its place at the key of that row alone, because the others may be free.
func (w *waiter) poll(ctx context.Context, seen locktable.Row) (locktable.Row, error) {
	h := w.hold
	w.busy = h.place(seen)
	w.noteWait(ctx)
	if h.joint == nil {
		return w.pollRow(ctx, seen)
	}
	for i, e := range h.entries {
		if i != w.busy {
			e.mutex.Release(h)
		}
	}
	seen, err := w.pollRow(ctx, seen)
	if err != nil && !w.outlasts(err) {
		return seen, err
	}
	if seen, err := w.queueAll(ctx); err != nil { // also after an outage: an attempt needs all
		return seen, err
	}
	return seen, err
}

// pollRow reads the row again and again.
func (w *waiter) pollRow(ctx context.Context, seen locktable.Row) (locktable.Row, error) {
	h := w.hold
	if h.fair && w.isInOrder() {
		if row, err := w.pollInTurn(ctx); err != nil || !w.unordered {
			return row, err
		} else if row != (locktable.Row{}) {
			seen = row
		}
	}
	if w.isFree(seen) { // the row was about to go: try again almost at once
		_, _ = w.wait(ctx, min(w.idle, time.Millisecond+jitter.N(4*time.Millisecond))) // both are told by ctx and the row
		return seen, ctx.Err()
	}
	changed, watched := false, false
	defer w.table.Attend()()
	if w.waker != nil && w.subscribe(w.waker, h.config.table.Topic(cmp.Or(seen.LockKey, h.lockKey))) { // there was no wake-up for a release before that
		row, _, err := w.table.Read(ctx, h.claimOf(seen))
		h.observed.notePoll()
		if err != nil || w.isFree(row) {
			return row, failure.Of(err, h.key)
		}
		seen = row
	}
	for {
		if w.unordered && time.Until(w.again) <= 0 {
			w.unordered = false
			row, err := w.pollInTurn(ctx)
			if row != (locktable.Row{}) {
				seen = row
			}
			if err != nil || !w.unordered {
				return seen, err
			}
		}
		pace := w.pace(seen, changed)
		pace.Seen, pace.Watched = seen, watched
		row, woken, err := w.table.Poll(ctx, h.claimOf(seen), pace)
		switch {
		case err != nil:
			return seen, failure.Of(err, h.key)
		case woken:
			return seen, nil
		}
		if h.observed != nil {
			h.observed.notePoll()
			h.observed.noteHolder(row.Holder)
		}
		if w.waitThroughOutages {
			h.noteOutage(nil)
		}
		h.noteAnswered()
		_ = w.table.Process(ctx, row) // it is known when ctx has ended
		changed, watched = row.Holder != seen.Holder || row.Age < seen.Age, true
		if seen = row; w.isFree(seen) {
			return seen, nil
		}
		e := h.entries[h.place(row)]
		e.noteRival(row.Holder)
		e.pinned.Store(nil)
	}
}

// isFree reports whether an attempt to acquire is worthwhile: there was no row, or its lease is over, or it has no holder.
func (w *waiter) isFree(row locktable.Row) bool {
	return row == (locktable.Row{}) || row.Left < 0 || w.table.IsLeftover(row)
}
