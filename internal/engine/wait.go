package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/poll"
	"github.com/sqllock/sqllock/internal/report"
)

const (
	// maxHolders is how many holders one call of Lock may use up without success: the
	// database answers too late, or it is not known what an attempt has done.
	maxHolders = 3
	// maxScatter limits the random time after an expiry within which all waiters try to
	// acquire the lock. It is short: until then the lock is free and unused.
	maxScatter = 5 * time.Millisecond
)

// A waiter is a call that locks, until it has the row or gives up.
type waiter struct {
	locks    *Locks
	hold     *hold
	once     bool           // it tries once and does not wait
	holders  int            // how many it has used up in a row
	since    time.Time      // when it was first in the queue of its process
	reported *report.Caller // once it has to wait, if that may be reported
	wakeups  subscription
	ticket   ticket // in the queue between the processes

	queuesAt int           // the key at which it queues, of a joint lock at first
	slice    time.Duration // for how long the caller of a joint lock has kept its keys at last
	served   []bool        // at which keys of a joint lock it has been the first in the queue
}

// What a waiter does next.
type step int

const (
	queueing step = iota // at its keys, behind other callers of this process
	reading              // the row, where a refused attempt would cost more; else it may step back
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
		if w.reported != nil {
			w.reported.End()
		}
		if w.ticket.turn != nil {
			w.leaveTurn(ctx)
		}
		if w.wakeups.stop != nil {
			w.wakeups.unsubscribe()
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
			if seen, err, next = (locktable.Row{}), nil, trying; !w.readsFirst() {
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
				if w.locks.waitThroughOutages {
					w.noteOutage(nil)
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
		h.observed.NoteHolder(w.ownerAt(w.queuesAt))
	}
	switch {
	case w.once:
		seen, err = w.tryAll()
	case h.joint:
		if h.locals[w.queuesAt].mutex.Owner() != nil {
			w.noteWait(ctx)
		}
		seen, err = w.queueAll(ctx)
	case ctx.Err() != nil || !h.locals[0].mutex.TryLock(h):
		seen, err = w.queueOne(ctx)
	}
	if err != nil {
		return seen, err
	}
	if h.observed != nil {
		h.observed.NoteDequeued()
	}
	if w.since.IsZero() {
		w.since = time.Now()
	}
	if h.term.passed > 0 && !time.Now().Before(h.lease.deadline()) { // the row has expired meanwhile: it waits like any other
		h.term = term{holder: w.locks.table.IDs.Next()}
	}
	return locktable.Row{}, nil
}

// ownerAt describes the hold of this process that has the i-th key for which w waits.
func (w *waiter) ownerAt(i int) locktable.Row {
	row := w.hold.locals[i].mutex.Owner().row()
	row.LockKey = w.hold.keys[i].lockKey
	return row
}

// queueOne makes the hold own the local mutex of its one key, which another caller had just now, unless ctx has ended.
func (w *waiter) queueOne(ctx context.Context) (seen locktable.Row, err error) {
	h := w.hold
	m := &h.locals[0].mutex
	if m.Owner() != nil {
		w.noteWait(ctx)
	}
	lock := m.Lock
	if h.inFront {
		lock = m.LockFirst
	}
	if err := lock(ctx, h); err != nil {
		return w.ownerAt(0), err
	}
	return locktable.Row{}, nil
}

// noteWait notes that the caller waits, for the key at which it queues, so that a long wait is reported. A wait
// for the turn at a semaphore or a read-write lock is reported by package seats, with the key of these.
func (w *waiter) noteWait(ctx context.Context) {
	h, i := w.hold, w.queuesAt
	if h.inTurns || w.reported != nil && !h.joint {
		return
	}
	at := report.Place{Key: h.keys[i].key, LockKey: h.keys[i].lockKey, Seen: func(ctx context.Context) (string, error) { return w.seenAt(ctx, i) }}
	if w.reported == nil {
		w.reported = w.locks.tracker.Begin(ctx, at)
	} else {
		w.reported.Move(at)
	}
}

// seenAt says why a caller waits at the i-th key, as far as this process has seen: holder is the last one, which may be of
// this process. err is the error of an outage, or names the transaction that has the row locked although its lease is over;
// or it is nil.
func (w *waiter) seenAt(ctx context.Context, i int) (holder string, err error) {
	l := w.hold.locals[i]
	if o := l.outage.Load(); o != nil {
		err = o.last
	}
	if own := l.mutex.Owner().row(); own.Holder != "" {
		return own.Holder, err
	}
	if pinned := l.pinnedHolder.Load(); pinned != nil && err == nil {
		return *pinned, w.whoPins(ctx, i)
	}
	return l.share.LastHolder(), err
}

// errHeld ends a single try that found the lock held.
var errHeld = errors.New("held")

// replaceHolder gives the hold another holder, because a row of the one that it had may still be deleted.
func (w *waiter) replaceHolder() {
	w.hold.term.holder = w.locks.table.IDs.Next()
	w.locks.sweepLater()
}

// readsFirst reports whether the row is to be read before an attempt. A refused attempt costs more round trips than a read,
// and locks the row until its transaction ends: processes that try again and again would have it locked most of the time, and
// its holder has to renew it. So the row is read first
//
//   - if the last attempt has found it taken, and that lease may last;
//   - if this process would step back for others, which may have the lock by now;
//   - before a single try on MariaDB, where a refused attempt locks the row for two statements and the end of the
//     transaction, so that a few dozen processes suffice.
func (w *waiter) readsFirst() bool {
	now := time.Since(w.locks.began)
	for _, l := range w.hold.locals {
		if int64(now) < l.takenUntil.Load() {
			return true
		}
	}
	return w.restOfStepBack() > 0 || w.once && w.locks.table.Acquisitions.RefusalsLockRows()
}

// readRow reads the row before an attempt.
func (w *waiter) readRow(ctx context.Context) (locktable.Row, error) {
	h := w.hold
	mayBeSwept := w.once && w.locks.table.Leftovers.Any()
	w.noteSent()
	seen, err := w.locks.table.Reads.ReadFirst(ctx, h.claim())
	h.observed.NotePoll()
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
	if w.locks.waitThroughOutages {
		w.noteOutage(nil)
	}
	w.noteAnswered()
	l := h.locals[w.place(seen)]
	l.pinnedHolder.Store(nil)
	l.takenUntil.Store(int64(time.Since(w.locks.began) + min(seen.Left, h.ttl)))
	if !w.isFree(seen) {
		l.share.Seen(seen.Holder)
	}
	if h.observed != nil {
		h.observed.NoteHolder(seen)
	}
}

// errFreshHolder is why an attempt is made again with another holder.
var errFreshHolder = errors.New("another holder is to try")

// errPinned is the reason why a caller waits for a row whose lease is over, if the server does not say who has it locked.
var errPinned = errors.New("the lease of its row is over, and a transaction may have the row locked")

// whoPins returns an error that names the transaction that has the row of the i-th key locked, or errPinned.
func (w *waiter) whoPins(ctx context.Context, i int) error {
	if pin, ok := w.locks.table.Pins.PinSoon(ctx, w.hold.keys[i].lockKey); ok {
		return fmt.Errorf("the lease of its row is over, and its row is %v", pin)
	}
	return errPinned
}

// noteSent notes that the database is asked for the row, or for what must be known before.
func (w *waiter) noteSent() {
	w.hold.lease.mu.Lock()
	defer w.hold.lease.mu.Unlock()
	w.hold.lease.sent = time.Now()
}

// noteAnswered notes that it has answered.
func (w *waiter) noteAnswered() {
	w.hold.lease.mu.Lock()
	defer w.hold.lease.mu.Unlock()
	w.hold.lease.sent = time.Time{}
}

// try makes one attempt to acquire the row. If it is not known what became of it, or the answer came too late, the
// row is deleted, and the holder must not be used again: try takes another one and returns errFreshHolder, up to maxHolders
// times in a row.
func (w *waiter) try(ctx context.Context) (seen locktable.Row, acquired bool, err error) {
	h := w.hold
	w.noteSent()
	claim := h.claim()
	if h.fair {
		claim = w.inOrder(claim)
	}
	got, err := w.locks.table.Acquisitions.Acquire(ctx, claim)
	if w.once && claim.InOrder != "" && err == nil && !got.Acquired && w.isFree(got.Row) { // to say who holds it
		got.Row, _, err = w.locks.table.Reads.Read(ctx, h.claim())
	}
	if got.Acquired {
		h.acquired = got.Sent
	}
	if h.observed != nil {
		h.observed.NoteAttempt(got.Batched)
	}
	w.holders++
	switch tooMany := w.holders == maxHolders; {
	case got.Acquired && !time.Now().Before(leaseEnd(h.acquired, h.ttl)):
		h.cleanUp(ctx)
		if !w.once && !tooMany {
			w.replaceHolder()
			return locktable.Row{}, false, errFreshHolder
		}
		w.holders = 0
		return locktable.Row{}, false, tooLate(h.key)
	case got.Acquired:
		for _, l := range h.locals {
			l.pinnedHolder.Store(nil)
		}
		h.term.token, h.term.since = got.Token, h.acquired
		return locktable.Row{}, true, nil
	case err != nil && dbcall.Is(err, dbcall.MaybeWritten) && !tooMany:
		w.replaceHolder()
		return locktable.Row{}, false, errFreshHolder
	}
	w.holders = 0
	if err == nil {
		w.recordRow(got.Row)
		if got.Row.Holder != "" && got.Row.Expired() {
			holder := got.Row.Holder // got is allocated otherwise, also for a row that was acquired
			h.locals[w.place(got.Row)].pinnedHolder.Store(&holder)
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
	w.queuesAt = w.place(seen)
	w.noteWait(ctx)
	if !h.joint {
		return w.pollRow(ctx, seen)
	}
	for i, l := range h.locals {
		if i != w.queuesAt {
			l.mutex.Release(h)
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
		if row, err := w.pollInTurn(ctx); err != nil || !w.ticket.unordered {
			return row, err
		} else if row != (locktable.Row{}) {
			seen = row
		}
	}
	if w.isFree(seen) { // the row was about to go: try again almost at once
		_, _ = w.wakeups.wait(ctx, min(w.locks.idle, time.Millisecond+jitter.N(4*time.Millisecond))) // both are told by ctx and the row
		return seen, ctx.Err()
	}
	changed, watched := false, false
	polled := cmp.Or(seen.LockKey, h.keys[0].lockKey)
	defer w.locks.table.Attend(polled, func() bool { return h.locals[w.place(seen)].share.IsAmongMany(seen.Age) })()
	if w.locks.waker != nil && w.wakeups.subscribe(w.locks.waker, h.locks.table.Topic(polled)) { // there was no wake-up for a release before that
		row, _, err := w.locks.table.Reads.Read(ctx, h.claimOf(seen))
		h.observed.NotePoll()
		if err != nil || w.isFree(row) {
			return row, failure.Of(err, h.key)
		}
		seen = row
	}
	for {
		if w.ticket.unordered && time.Until(w.ticket.again) <= 0 {
			w.ticket.unordered = false
			row, err := w.pollInTurn(ctx)
			if row != (locktable.Row{}) {
				seen = row
			}
			if err != nil || !w.ticket.unordered {
				return seen, err
			}
		}
		pace := w.pace(seen, changed)
		pace.Seen, pace.Watched = seen, watched
		row, woken, err := w.locks.table.Poller.Poll(ctx, h.claimOf(seen), pace)
		switch {
		case err != nil:
			return seen, failure.Of(err, h.key)
		case woken:
			return seen, nil
		}
		if h.observed != nil {
			h.observed.NotePoll()
			h.observed.NoteHolder(row)
		}
		if w.locks.waitThroughOutages {
			w.noteOutage(nil)
		}
		w.noteAnswered()
		_ = w.locks.table.Names.Process(ctx, row) // it is known when ctx has ended
		changed, watched = row.Holder != seen.Holder || row.Age < seen.Age, true
		if seen = row; w.isFree(seen) {
			return seen, nil
		}
		l := h.locals[w.place(row)]
		l.share.Seen(row.Holder)
		l.pinnedHolder.Store(nil)
	}
}

// place returns the index of the key whose row it is, among those for which w waits; or 0 if that is not known.
func (w *waiter) place(row locktable.Row) int {
	if w.hold.joint {
		if i, found := w.hold.find(row.LockKey); found {
			return i
		}
	}
	return 0
}

// isFree reports whether an attempt to acquire is worthwhile: there was no row, or its lease is over, or it has no holder.
func (w *waiter) isFree(row locktable.Row) bool {
	return row == (locktable.Row{}) || row.Expired() || w.locks.table.Leftovers.Includes(row)
}

// stepBack lets other processes acquire if the callers of this one have had the lock for long. It returns
// false if ctx ended first.
func (w *waiter) stepBack(ctx context.Context) bool {
	for rest := w.restOfStepBack(); rest > 0; rest = w.restOfStepBack() {
		if !bounded.Sleep(ctx, rest) {
			return false
		}
	}
	return true
}

// restOfStepBack is for how long this process has to leave its locks to others.
func (w *waiter) restOfStepBack() (rest time.Duration) {
	if w.once || w.hold.fair && w.isInOrder() {
		return 0
	}
	for _, l := range w.hold.locals {
		rest = max(rest, l.share.Rest(w.locks.idle, w.locks.waker != nil, w.hold.inTurns || w.hold.locks.handOff))
	}
	return rest
}

// pace is how the waiter polls: often at first, every IdleBetweenTries if a release would wake it, and among rivals by
// the rule of [fair.Share.Pause].
func (w *waiter) pace(seen locktable.Row, changed bool) poll.Pace {
	share := &w.hold.locals[w.place(seen)].share
	pause, amongMany := share.Pause(time.Since(w.since), w.locks.idle, seen.Age, changed)
	p := poll.Pace{Longest: w.locks.idle, Wake: w.wakeups.wake, Regardless: amongMany}
	if w.locks.waker != nil {
		p.Pause = w.locks.idle
	} else if changed || pause < poll.ShortestPoll(w.locks.idle) {
		p.Pause = pause
	}
	// Otherwise a poll comes before the lease is over. Left may be the longest Duration there is: add nothing to it.
	if seen.Left/poll.CalmShare < w.locks.idle {
		// A row is expired only after its last microsecond, or millisecond.
		p.Left = seen.Left + time.Millisecond + jitter.N(min(w.locks.idle/20, maxScatter)+1)
	}
	return p
}
