package engine

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/observe"
)

// The way of a call that locks, from the caller to the database:
//
//	Locks.Lock             checks the settings; tells the observers
//	Locks.acquire          enters again if ctx carries a lease of the lock, or goes on
//	waiter.acquire         queues, reads, tries and polls, until the row is acquired
//	waiter.try             makes one attempt
//	acquisitions.Acquire   sends the statement: in package locktable
//
// A caller that has the row gets its lease from Locks.grant.

// notAtAll is how long Lock waits if it tries once.
const notAtAll time.Duration = 0

// Lock acquires what r asks for, for a caller with ctx. wait limits the time until then: 0 is a single try, and
// less than 0 no limit. Unless it returns an error, u is a use of the lock from then on, and its context is made
// from ctx. face is what u.Face returns.
func (s *Locks) Lock(ctx context.Context, r Request, wait time.Duration, u *Use, face any) error {
	if err := s.Check(r); err != nil {
		return err
	}
	u.face = face
	if len(s.observers) == 0 {
		return s.acquire(ctx, r, wait, u, nil)
	}
	return s.lockObserved(ctx, r, wait, u)
}

// lockObserved is Lock for a registry with observers.
func (s *Locks) lockObserved(ctx context.Context, r Request, wait time.Duration, u *Use) (err error) {
	o := s.observers.Begin(ctx, observe.AcquireStart{Key: r.key, TTL: r.ttl, Wait: wait, AutoRenew: r.autoRenew, StandsBy: report.StandsBy(ctx, r.key)})
	err = s.acquire(o.Context(), r, wait, u, o) //nolint:contextcheck // it is made from ctx
	e := o.Answer(err)
	if err == nil {
		e.Holder, e.Token, _ = u.Term()
		e.Reentered = u.hold.observed != o
	}
	switch {
	case e.Reentered:
		e.Queued = 0
	case err == nil:
		e.HandedOn = u.hold.term.passed > 0
	}
	reported := false
	defer func() {
		if !reported && err == nil { // an observer has panicked: the caller does not get the lease
			_ = u.Unlock(ctx, time.Time{})
		}
	}()
	o.ReportAnswer(e)
	reported = true
	return err
}

// Check refuses settings of a handle that no lease can have.
func (s *Locks) Check(r Request) error {
	if r.minHold < 0 {
		return failure.Invalid("minimum hold %v of %q is negative", r.minHold, r.key)
	}
	if r.fair {
		if err := s.table.Turns.Check(); err != nil {
			return failure.Of(err, r.key)
		}
	}
	return s.checkTTL(r.key, r.ttl)
}

// checkTTL refuses a time-to-live that a lease of key cannot have.
func (s *Locks) checkTTL(key string, ttl time.Duration) error {
	if ttl < s.leastTTL {
		return CheckTTL(ttl, s.leastTTL)
	}
	if s.fixedTTL != 0 && ttl != s.fixedTTL {
		return failure.Invalid("time-to-live %v of %q: without the column EXPIRED_AFTER all locks have the registry's, %v (`%s --layout spring7` adds it, if no Spring before 7 uses the table)",
			ttl, key, s.fixedTTL, s.table.MigrateUp())
	}
	return nil
}

// acquire enters again or acquires, and notes in o, which may be nil, what it takes.
func (s *Locks) acquire(ctx context.Context, r Request, wait time.Duration, u *Use, o *report.Call) error {
	if entered, err := s.reenter(ctx, r, wait, u); entered || err != nil {
		return err
	}
	h := newHold(s, r)
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
	w := waiter{locks: s, hold: h, once: wait == notAtAll}
	began, returned := time.Now(), false
	defer func() {
		if !returned { // an observer of fallbacks has panicked
			h.leaveRow()
			h.releaseMutexes()
			s.removeWaiter(h)
			u.cancel(nil)
		}
	}()
	seen, err := w.acquire(waiting)
	returned = true
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
	if bounded.Ended(ctx) != nil && seen.IsReleased() { // it was polled, and another attempt was to come
		seen = locktable.Row{}
	}
	var pin locktable.Pin
	if seen.Holder != "" && seen.Expired() && bounded.Ended(ctx) == nil {
		pin, _ = s.table.Pins.PinSoon(ctx, seen.LockKey)
	}
	return s.heldError(key, seen.Holder, max(seen.Left, 0), waited, s.processOf(ctx, seen), pin, bounded.Ended(ctx))
}

// reenter enters the lock once more if ctx carries a lease of it. It returns false and no error if ctx carries
// none, or one that was unlocked: then the caller is an owner like any other.
func (s *Locks) reenter(ctx context.Context, r Request, wait time.Duration, u *Use) (entered bool, err error) {
	h, err := s.carriedFor(ctx, &r)
	if h == nil {
		return false, err
	}
	u.begin(ctx, h, r.key)
	if !h.lease.enter(u) {
		u.cancel(nil)
		return false, h.lost()
	}
	waiting := ctx
	if wait > 0 {
		limited, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		waiting = limited
	}
	if err := s.renewReentered(ctx, waiting, u); err != nil && !errors.Is(err, failure.ErrPinned) { // no other holder has a pinned row
		// What ends the outer lease here has ended the renewal too. The lease may have been unlocked meanwhile.
		u.releasing = releaseContext{hold: h, caller: waiting, by: h.lease.deadline()}
		_ = h.unlock(u) //nolint:contextcheck // it is made from ctx
		u.cancel(nil)
		return false, err
	}
	h.lease.keepFor(r.minHold)
	return true, nil
}

// renewReentered renews the lease that u has entered again, for a caller with ctx, until waiting ends. Its errors are those
// of a caller that acquires.
func (s *Locks) renewReentered(ctx, waiting context.Context, u *Use) error {
	began := time.Now()
	err := u.hold.renewForReentry(waiting)
	ended := bounded.Ended(waiting)
	if err == nil || ended == nil || errors.Is(err, failure.ErrPinned) {
		return err
	}
	if lost := u.hold.alive(); lost != nil {
		return lost
	}
	waited, silent := time.Since(began), failure.SilenceOf(err)
	switch {
	case !errors.Is(ended, context.DeadlineExceeded):
	case bounded.Ended(ctx) == nil && u.hold.mayBePinned(ctx, silent):
		return failure.ErrPinned
	case failure.IsSilence(silent, waited):
		return failure.CutShort(ctx, failure.Silent(u.key, silent))
	}
	return s.notAcquired(ctx, u.key, locktable.Row{}, waited)
}

// grant starts the lease of a row that was acquired, or handed over to a caller that may
// have given up meanwhile.
func (s *Locks) grant(ctx, waiting context.Context, u *Use) error {
	h := u.hold
	gaveUp := h.term.passed > 0 && bounded.Ended(waiting) != nil
	h.start(u)
	if !s.addHold(h) {
		h.finish(observe.EndClosed, nil)
	}
	err := h.alive()
	if err == nil {
		err = h.give(gaveUp)
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
	if err := u.Unlock(waiting, h.lease.deadline()); err != nil {
		return err
	}
	return s.notAcquired(ctx, h.key, locktable.Row{}, 0)
}

// errTooLate is why a row that was acquired gives no lease.
var errTooLate = errors.New("the database took longer to answer than a lease would last")

func tooLate(key string) error {
	return fmt.Errorf("%w: %q: %w", failure.ErrDatabase, key, errTooLate)
}
