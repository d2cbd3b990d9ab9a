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
	"github.com/sqllock/sqllock/observe"
)

// The way of a call that locks, from the caller to the database:
//
//	Locks.Lock       checks the settings; tells the observers
//	Locks.enter      enters again if ctx carries a lease of the lock, or goes on
//	waiter.acquire   queues, reads, tries and polls, until the row is acquired
//	waiter.try       makes one attempt
//	Table.Acquire    sends the statement
//
// A caller that has the row gets its lease from Locks.grant.

// notAtAll is how long Lock waits if it tries once.
const notAtAll time.Duration = 0

const (
	// maxHolders is how many holders one call of Lock may use up without success: the
	// database answers too late, or it is not known what an attempt has done.
	maxHolders = 3
	// maxScatter limits the random time after an expiry within which all waiters try to
	// acquire the lock. It is short: until then the lock is free and unused.
	maxScatter = 5 * time.Millisecond
)

// errTooLate is why a row that was acquired gives no lease.
var errTooLate = errors.New("the database took longer to answer than a lease would last")

func tooLate(key string) error {
	return fmt.Errorf("%w: %q: %w", failure.ErrDatabase, key, errTooLate)
}

// enter acquires, and notes in o, which may be nil, what it takes.
func (s *Locks) enter(ctx context.Context, r Request, wait time.Duration, u *Use, o *observation) error {
	if entered, err := s.reenter(ctx, r, u); entered || err != nil {
		return err
	}
	h := newHold(&s.config, r)
	h.observed = o
	// The context under the lease's own ends the wait, too, if the registry is closed.
	waiting := u.begin(ctx, h, r.key)
	if err := s.addWaiter(h, u.cancel); err != nil {
		u.cancel(nil)
		return err
	}
	defer s.calls.Done()
	if wait > 0 {
		limited, cancel := context.WithTimeout(waiting, wait)
		defer cancel()
		waiting = limited
	}
	w := waiter{Locks: s, hold: h, once: wait == notAtAll}
	began := time.Now()
	seen, err := w.acquire(waiting)
	if err == nil {
		return s.grant(ctx, waiting, u)
	}
	defer u.cancel(nil)
	s.sweepLater()
	shared := sharedErrorOf(waiting)
	ended := bounded.Ended(waiting)
	if ended == nil {
		s.shareNoAnswer(h, err)
	}
	seen, silent := w.silence(waiting, ended, seen, began)
	outage := w.leaveOutage()
	h.releaseMutexes()
	s.removeWaiter(h)
	switch {
	case s.closing.Err() != nil:
		return fmt.Errorf("%w: %q", failure.ErrClosed, r.key)
	case shared != nil:
		return shared
	case ended == nil && !errors.Is(err, errHeld):
		return err
	case outage != nil: // it is not known whether the lock is held
		return outage.ended(ctx)
	case silent != nil:
		return failure.CutShort(ctx, silent)
	default:
		waited := time.Since(began)
		if w.once {
			waited = 0
		}
		return s.notAcquired(ctx, r.keyOf(seen), seen, waited)
	}
}

// notAcquired describes a wait that ctx has ended, or a try if it has not.
func (s *Locks) notAcquired(ctx context.Context, key string, seen locktable.Row, waited time.Duration) error {
	var pin locktable.Pin
	if seen.Holder != "" && seen.Expired() && bounded.Ended(ctx) == nil {
		pin, _ = s.table.PinSoon(ctx, seen.LockKey)
	}
	return s.heldError(key, seen.Holder, max(seen.Left, 0), waited, s.processOf(ctx, seen), pin, bounded.Ended(ctx))
}

// Check refuses settings of a handle that no lease can have.
func (s *Locks) Check(r Request) error {
	if r.minHold < 0 {
		return failure.Invalid("minimum hold %v of %q is negative", r.minHold, r.key)
	}
	if r.fair {
		if err := s.table.CheckTurns(); err != nil {
			return failure.Of(err, r.key)
		}
	}
	return s.config.checkTTL(r.key, r.ttl)
}

// reenter enters the lock once more if ctx carries a lease of it. It returns false and no error if ctx carries
// none, or one that was unlocked: then the caller is an owner like any other.
func (s *Locks) reenter(ctx context.Context, r Request, u *Use) (entered bool, err error) {
	h, err := s.carriedFor(ctx, &r)
	if h == nil {
		return false, err
	}
	u.begin(ctx, h, r.key)
	if !h.enter(u) {
		u.cancel(nil)
		return false, h.lost()
	}
	if err := h.renewForEntry(ctx); err != nil && !errors.Is(err, failure.ErrPinned) { // no other holder has a pinned row
		// What ends the outer lease here has ended the renewal too.
		u.releasing = releaseContext{hold: h, caller: ctx}
		_ = h.unlock(u) //nolint:contextcheck // it is made from ctx
		u.cancel(nil)
		return false, err
	}
	h.keepFor(r.minHold)
	return true, nil
}

// grant starts the lease of a row that was acquired, or handed over to a caller that may
// have given up meanwhile.
func (s *Locks) grant(ctx, waiting context.Context, u *Use) error {
	h := u.hold
	gaveUp := h.wasHandedOver() && bounded.Ended(waiting) != nil
	h.start(u)
	if !s.addHold(h) {
		h.finish(observe.EndClosed, nil)
	}
	h.startTimer()
	err := h.alive()
	if err == nil && !gaveUp {
		err = h.give()
	}
	if err != nil {
		h.cleanUp(waiting)
		u.cancel(nil)
		if errors.Is(err, failure.ErrLockLost) {
			err = tooLate(h.key)
		}
		return err
	}
	if !gaveUp {
		return nil
	}
	if err := u.Unlock(waiting, h.deadline()); err != nil {
		return err
	}
	return s.notAcquired(ctx, h.key, locktable.Row{}, 0)
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
	defer w.unsubscribe()
	defer w.leaveTurn(ctx)
	defer func() { w.waits.End() }()
	for next := queueing; ; {
		switch next {
		case queueing:
			if seen, err = w.queue(ctx); err == nil && h.wasHandedOver() {
				return seen, nil
			}
			next = reading
		case reading:
			if seen, err = w.readIfTaken(ctx); !w.isFree(seen) {
				next = polling
			} else if next = trying; err == nil && !w.stepBack(ctx) {
				return seen, ctx.Err()
			}
		case trying:
			var acquired bool
			if seen, acquired, err = w.try(ctx); acquired {
				h.noteOutage(nil)
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
	outage := h.entry.outage.Load().after(err, w.idle)
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
	for i := range w.hold.count() {
		e := w.hold.entryAt(i)
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

// readIfTaken reads the row if an attempt has found it taken and its lease may last, if this process
// would step back for others, which may have the lock by now, and before a single try on MariaDB. A
// refused attempt locks the row until its transaction ends, and costs more round trips. Processes that
// try again and again should not have the row locked most of the time, because its holder has to renew
// it. On MariaDB a refused attempt locks it for two statements and the end of the transaction, so that
// a few dozen processes suffice for that.
func (w *waiter) readIfTaken(ctx context.Context) (locktable.Row, error) {
	h := w.hold
	mayBeTaken := h.mayBeTaken() || w.restOfStepBack() > 0 || w.once && w.table.RefusalsLockRows()
	if !mayBeTaken {
		return locktable.Row{}, nil
	}
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
	h.noteOutage(nil)
	h.noteAnswered()
	e := h.entryAt(h.place(seen))
	e.pinned.Store(nil)
	e.takenUntil = time.Now().Add(min(seen.Left, h.ttl))
	if !w.isFree(seen) {
		e.noteRival(seen.Holder)
	}
	h.observed.noteHolder(seen.Holder)
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
	claim := w.inOrder(h.claim())
	got, err := w.table.Acquire(ctx, claim)
	if w.once && claim.InOrder != "" && err == nil && !got.Acquired && w.isFree(got.Row) { // to say who holds it
		got.Row, _, err = w.table.Read(ctx, h.claim())
	}
	if got.Acquired {
		h.acquired = got.Sent
	}
	h.observed.noteAttempt(got.Batched)
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
		for i := range h.count() {
			h.entryAt(i).pinned.Store(nil)
		}
		h.term.token, h.term.since = got.Token, h.acquired
		return locktable.Row{}, true, nil
	case locktable.Is(err, locktable.OutcomeUnknown) && !tooMany:
		w.renewHolder()
		return locktable.Row{}, false, errFreshHolder
	}
	w.holders = 0
	if err == nil {
		w.recordRow(got.Row)
		if got.Row.Holder != "" && got.Row.Expired() {
			holder := got.Row.Holder // got is allocated otherwise, also for a row that was acquired
			h.entryAt(h.place(got.Row)).pinned.Store(&holder)
		}
	}
	if claim.InOrder != "" && w.isFree(got.Row) { // others have the turn: it polls where they queue
		got.Row = locktable.Row{LockKey: claim.InOrder}
	}
	return got.Row, false, failure.Of(err, h.key)
}

// poll waits until the row, which was last seen as given, is free, or the waiter is woken up. Meanwhile the caller of
// a joint lock has its place at the key of that row alone, because the others may be free.
func (w *waiter) poll(ctx context.Context, seen locktable.Row) (locktable.Row, error) {
	h := w.hold
	w.busy = h.place(seen)
	w.noteWait(ctx)
	if !h.isJoint() {
		return w.pollRow(ctx, seen)
	}
	for i := range h.count() {
		if i != w.busy {
			h.entryAt(i).mutex.Release(h)
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
	if w.isInOrder() {
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
	if w.subscribe(w.waker, h.config.table.Topic(cmp.Or(seen.LockKey, h.lockKey))) { // there was no wake-up for a release before that
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
		h.observed.notePoll()
		h.observed.noteHolder(row.Holder)
		h.noteOutage(nil)
		h.noteAnswered()
		_ = w.table.Process(ctx, row) // it is known when ctx has ended
		changed, watched = row.Holder != seen.Holder || row.Age < seen.Age, true
		if !w.isFree(row) {
			e := h.entryAt(h.place(row))
			e.noteRival(row.Holder)
			e.pinned.Store(nil)
		}
		if seen = row; w.isFree(seen) {
			return seen, nil
		}
	}
}

// pace is how the waiter polls: often at first, every IdleBetweenTries if a release would wake it, and among rivals by
// the rule of [pauseAfter]. Rivals that seem to be Spring's are to have as good a chance as this process: if the row has
// changed since the last poll, the next one comes after IdleBetweenTries, as theirs do, or after what that is by default.
func (w *waiter) pace(seen locktable.Row, changed bool) locktable.Pace {
	rivals := &w.hold.entryAt(w.hold.place(seen)).rivals
	p := locktable.Pace{Longest: w.idle, Wake: w.wake, Regardless: seen.Age < youngFor && rivals.compete() && rivals.areMany()}
	switch {
	case w.waker != nil, changed && seen.Age >= youngFor:
		p.Pause = w.idle
	case seen.Age >= youngFor:
	case rivals.compete() && !rivals.lookLikeSpring():
		if pause := pauseAfter(time.Since(w.since), w.idle); changed || pause < locktable.ShortestPoll(w.idle) {
			p.Pause = pause
		}
	case changed:
		p.Pause = min(w.idle, rivalInterval)
	}
	// Otherwise a poll comes before the lease is over. Left may be the longest Duration there is: add nothing to it.
	if seen.Left/locktable.CalmShare < w.idle {
		// A row is expired only after its last microsecond, or millisecond.
		p.Left = seen.Left + time.Millisecond + jitter.N(min(w.idle/20, maxScatter)+1)
	}
	return p
}

// isFree reports whether an attempt to acquire is worthwhile: there was no row, or its lease is over, or it has no holder.
func (w *waiter) isFree(row locktable.Row) bool {
	return row == (locktable.Row{}) || row.Expired() || w.table.IsLeftover(row)
}
