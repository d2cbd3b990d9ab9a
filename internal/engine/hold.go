package engine

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/observe"
)

// A term is the time for which this process has a row, from its acquisition to its
// release. One hold hands it over to the next.
type term struct {
	holder string    // what stands in CLIENT_ID
	token  int64     // the fencing token of the hold that has the row
	since  time.Time // before the statement that acquired the row was sent
	passed int       // how often the row was handed over
}

// A state is how far a hold has come. It only grows. Callers ask a hold by these methods:
//
//	alive          nil while the lease lasts, else why not: it was lost, closed or unlocked; it ends a lease whose time is up
//	lost, lostBy   why it was lost or closed, with the reason, and the bare sentinel; nil also after Unlock
//	lasts          whether no end of it was noticed yet
//	isUnlocked     whether the last Unlock has begun
//	mayBeRenewed   whether the registry may still renew it
type state int

const (
	stateWaiting   state = iota // for the row
	stateHeld                   // by its uses
	stateUnlocking              // the last Unlock has begun
	stateEnded                  // before an Unlock, for a cause
	stateUnlocked               // after the last Unlock had begun; it may have a cause too
)

// isOver reports whether a hold has ended.
func (s state) isOver() bool { return s >= stateEnded }

// isUnlocked reports whether the last Unlock has begun.
func (s state) isUnlocked() bool { return s == stateUnlocking || s == stateUnlocked }

// A hold is one acquisition of a lock by this process: one row, and its uses, which are
// the lease of the caller that acquired it and those of callers that entered again. The
// hold starts once the row is acquired. It is over exactly once: by the last Unlock, by
// the clock, by finding the row gone, or by Close of the registry.
//
// Its fields are set before it starts, except for those of its lease.
type hold struct {
	Request    // of the caller that acquired
	term       term
	locks      *Locks        // of the registry
	locals     []*localLock  // of the LOCK_KEYs
	local      [1]*localLock // the memory of locals, unless the lock is a joint one
	acquired   time.Time     // before the statement was sent, or when the row was handed over
	renewUntil time.Time     // until when the lease may last, unless its caller renews it; zero means always
	arrived    uint64        // its place among all callers that have waited
	observed   *report.Call  // of the call that locks, or nil

	lease lease
}

// A lease is what changes of a hold: when it ends, who uses it, and why it is over. mu guards all of it. No other mutex is taken
// while mu is held.
type lease struct {
	mu        sync.Mutex
	end       time.Time // when the lease ends; zero or past until the row is acquired
	rowEnd    time.Time // when the row expires at the earliest
	rowEndMax time.Time // when the row expires at the latest, if it was asked to outlast ttl
	sent      time.Time // when the database was asked, while the caller waits for its answer
	timer     *time.Timer
	uses      []*Use
	first     [1]*Use       // the memory of uses, which mostly is one
	over      chan struct{} // closed when it is over; nil until a release waits
	guarded   bool          // a transaction of the caller's may have the row pinned
	pinnedBy  int           // how many of ExecuteLockedTx have
	keep      time.Duration // how long the row stays at least: the longest minimum hold of its uses
	granted   time.Time     // when the caller got the lease, from which the minimum hold counts; or zero
	state     state
	cause     error // why it is over, or nil after Unlock
	why       observe.EndReason
	failed    error // why the last renewal failed, if none has succeeded since
	// renewAfter is before when it is not renewed with all other leases, or zero.
	renewAfter time.Time
}

func newHold(s *Locks, r Request) *hold {
	return &hold{Request: r, locks: s, lease: lease{keep: r.minHold}, term: term{holder: s.table.IDs.Next()}}
}

// claim is what the table has to know of the row.
func (h *hold) claim() locktable.Claim {
	c := locktable.Claim{LockKey: h.keys[0].lockKey, Holder: h.term.holder, TTL: h.ttl}
	c.More = slices.Grow(c.More, len(h.keys)-1)
	for _, one := range h.keys[1:] {
		c.More = append(c.More, one.lockKey)
	}
	return c
}

// claimOf is the claim of one row of h.
func (h *hold) claimOf(row locktable.Row) locktable.Claim {
	c := locktable.Claim{LockKey: h.keys[0].lockKey, Holder: h.term.holder, TTL: h.ttl}
	if h.joint {
		c.LockKey = row.LockKey
	}
	return c
}

// lastingClaim is the claim with a TTL that covers all the time that the row may last.
func (h *hold) lastingClaim() locktable.Claim {
	c := h.claim()
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	if !h.lease.rowEndMax.IsZero() {
		c.TTL = max(c.TTL, time.Until(h.lease.rowEndMax))
	}
	return c
}

func (l *lease) deadline() time.Time {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.end
}

// row describes h, which may be nil, to a caller of this process that has to wait.
func (h *hold) row() locktable.Row {
	if h == nil {
		return locktable.Row{}
	}
	h.lease.mu.Lock()
	end, state := h.lease.rowEnd, h.lease.state
	h.lease.mu.Unlock()
	if state == stateWaiting {
		return locktable.Row{}
	}
	return locktable.Row{Holder: h.term.holder, Left: time.Until(end)}
}

// start begins the lease of the row that h has acquired, or was handed over. give
// follows once the registry knows h.
func (h *hold) start(u *Use) {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	if h.term.passed > 0 {
		h.lease.rowEnd = h.lease.end.Add(Margin(h.ttl))
	} else {
		h.lease.end, h.lease.rowEnd = leaseEnd(h.acquired, h.ttl), h.acquired.Add(h.ttl)
	}
	if h.locks.maxHold > 0 {
		h.renewUntil = h.acquired.Add(h.locks.maxHold)
	}
	h.lease.uses = append(h.lease.first[:0], u)
	h.lease.state = stateHeld
}

// give marks the lease as granted, unless its caller has given up, and arms the timer. If h is over, it returns why.
func (h *hold) give(gaveUp bool) error {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	if h.lease.state >= stateEnded {
		return h.lostLocked()
	}
	h.lease.timer = time.AfterFunc(time.Until(h.lease.end), h.endIfExpired)
	if !gaveUp {
		h.lease.granted = time.Now() // not when the statement was sent: the row may be younger
	}
	return nil
}

// enter adds a use, of a caller that enters the lock again. It returns false if h is over, or its last Unlock has begun.
func (l *lease) enter(u *Use) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state != stateHeld {
		return false
	}
	l.uses = append(l.uses, u)
	return true
}

// leave removes a use that is unlocked. The last one stays until h is over, so that it is notified if the lease ends
// before the row is released: then last is true. It returns why h is over if it is.
func (h *hold) leave(u *Use) (last bool, err error) {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	switch {
	case h.lease.state != stateHeld:
		return false, h.lostLocked()
	case len(h.lease.uses) == 1:
		h.lease.state = stateUnlocking
		return true, nil
	}
	h.lease.uses = slices.DeleteFunc(h.lease.uses, func(other *Use) bool { return other == u })
	return false, nil
}

// keepFor notes the minimum hold that a caller has asked for who has entered again.
func (l *lease) keepFor(minHold time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keep = max(l.keep, minHold)
}

// renew makes the row, then the lease, last for ttl from now, because its caller wants that. It waits for a pinned row.
func (h *hold) renew(ctx context.Context, ttl time.Duration) error {
	return h.renewBy(ctx, ttl, leaseEnd, h.sendRenewal)
}

func (h *hold) sendRenewal(ctx context.Context, c locktable.Claim, late func()) (bool, error) {
	return h.locks.table.Renewals.Renew(ctx, c, locktable.PinnedTimeout, late)
}

// renewForReentry renews for a caller that enters again. The caller may be in the transaction that has the
// row pinned, so renewForReentry does not wait for that: its error is failure.ErrPinned then, or nil.
func (h *hold) renewForReentry(ctx context.Context) error {
	h.lease.mu.Lock()
	guarded, pinned := h.lease.guarded, h.lease.pinnedBy > 0
	h.lease.mu.Unlock()
	switch {
	case pinned:
		return h.alive()
	case guarded:
		return h.renewBy(ctx, h.ttl, h.renewedEnd, h.locks.table.Renewals.RenewUnpinned)
	default:
		return h.renewBy(ctx, h.ttl, h.renewedEnd, h.sendRenewal)
	}
}

// notePin counts the transactions of ExecuteLockedTx that have the row pinned.
func (l *lease) notePin(more int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pinnedBy += more
}

// renewedEnd returns when the lease ends that a statement has renewed for which its caller has not asked: by then MaxHold
// may have passed.
func (h *hold) renewedEnd(sent time.Time, ttl time.Duration) time.Time {
	end := leaseEnd(sent, ttl)
	if !h.renewUntil.IsZero() && end.After(h.renewUntil) {
		return h.renewUntil
	}
	return end
}

// renewBy is renew with a way to send the statement, and when the lease then ends.
func (h *hold) renewBy(
	ctx context.Context, ttl time.Duration, endOf func(time.Time, time.Duration) time.Time, send func(context.Context, locktable.Claim, func()) (bool, error),
) error {
	if err := h.alive(); err != nil {
		return err
	}
	if !h.expectRowFor(ttl) {
		return notHeld(h.key) // the last Unlock has begun just now
	}
	sent, c := time.Now(), h.claim()
	c.TTL = ttl
	bounded, cancel := context.WithDeadline(ctx, h.lease.deadline())
	defer cancel()
	renewed, err := send(bounded, c, func() {
		if errors.Is(h.alive(), failure.ErrLockLost) {
			h.cleanUp(ctx)
		}
	})
	h.expectRowFor(ttl) // once more: the row may have been changed long after the first time
	switch {
	case err == nil && renewed:
		h.lease.extend(endOf(sent, ttl), sent.Add(ttl))
	case err == nil && h.lease.isUnlocked():
		return notHeld(h.key) // its own Unlock was faster
	case err == nil:
		h.finish(observe.EndTaken, nil)
	}
	if lost := h.alive(); lost != nil {
		if renewed && errors.Is(lost, failure.ErrLockLost) {
			// The answer came too late. The row has no holder, and neither Unlock nor Close is
			// about to delete it.
			h.cleanUp(ctx)
		}
		return lost
	}
	if err == nil {
		return nil
	}
	return failure.Kinded(ctx, failure.Of(err, h.key))
}

// expectRowFor notes that the row is asked to last for ttl from now, if that is longer than the
// time-to-live. It reports whether the row may be renewed: not once the last Unlock has begun.
func (h *hold) expectRowFor(ttl time.Duration) bool {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	if h.lease.state == stateUnlocking || h.lease.state == stateUnlocked {
		return false
	}
	if until := time.Now().Add(ttl); ttl > h.ttl && until.After(h.lease.rowEndMax) {
		h.lease.rowEndMax = until
	}
	return true
}

// mayOutlastTTL reports whether the row was asked to last for longer than the time-to-live.
func (l *lease) mayOutlastTTL() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return !l.rowEndMax.IsZero()
}

// extend moves the ends of the lease and of the row. Renewals may overlap and arrive in
// any order. None of them shortens the row, so the latest end counts.
func (l *lease) extend(end, rowEnd time.Time) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.state >= stateEnded || !time.Now().Before(l.end) {
		return
	}
	if rowEnd.After(l.rowEnd) {
		l.rowEnd = rowEnd
	}
	l.failed = nil
	if end.After(l.end) {
		l.end = end
		if l.timer != nil {
			l.timer.Reset(time.Until(end))
		}
	}
}

// cleanUp deletes the row, whatever has become of ctx. If it cannot, the table deletes it
// later.
func (h *hold) cleanUp(ctx context.Context) {
	h.locks.table.Leftovers.CleanUp(ctx, h.lastingClaim())
	h.locks.sweepLater()
}

// leaveRow makes the row a leftover, which the table deletes later.
func (h *hold) leaveRow() {
	h.locks.table.Leftovers.Add(h.lastingClaim())
	h.locks.sweepLater()
}

// finish ends h: it ends the contexts of its uses, lets the next caller of this process in, and reports the
// end, with the error of the release. It returns false if h was over already.
func (h *hold) finish(why observe.EndReason, releaseErr error) bool {
	uses, ended, cause := h.endLease(why)
	if !ended {
		return false
	}
	for _, u := range uses {
		u.cancel(cause)
	}
	if why != observe.EndUnlocked && why.Lost() && (h.rowMayOutlast() || h.joint && !h.lease.isUnlocked()) { // Unlock deletes all rows that are left
		h.leaveRow()
	}
	h.releaseMutexes()
	h.locks.removeHold(h)
	switch {
	case h.observed == nil:
	case why == observe.EndExpired: // who notices that may have a mutex, as database/sql has when it asks a context
		go h.reportEnd(why, releaseErr)
	default:
		h.reportEnd(why, releaseErr)
	}
	return true
}

// reportEnd tells the observers why h, which is over, has ended.
func (h *hold) reportEnd(why observe.EndReason, releaseErr error) {
	h.observed.ReportEnd(observe.LeaseEnd{
		Key: h.key, Holder: h.term.holder, Token: h.term.token, Reason: why, Err: cmp.Or(h.lost(), releaseErr),
		Held: time.Since(h.acquired), Left: max(0, time.Until(h.lease.deadline())), AutoRenew: h.autoRenew,
	})
}

// rowMayOutlast reports whether the row may be there long after the lease, because a
// renewal for longer than ttl had no answer.
func (h *hold) rowMayOutlast() bool {
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	return time.Until(h.lease.rowEndMax) > h.ttl
}

// endLease notes why h is over, unless it was already. It returns the uses whose contexts its caller has to end, and with what
// cause, once no mutex is held: a context asks the one that it was made of, which may be that of another lease. If the time of
// that is up, its observers are told then.
func (h *hold) endLease(why observe.EndReason) (uses []*Use, ended bool, cause error) {
	if why != observe.EndUnlocked {
		cause = causeOf(why)
	}
	h.lease.mu.Lock()
	switch h.lease.state {
	case stateEnded, stateUnlocked:
		h.lease.mu.Unlock()
		return nil, false, nil
	case stateUnlocking:
		h.lease.state = stateUnlocked
	default:
		h.lease.state = stateEnded
	}
	h.lease.cause, h.lease.why = cause, why
	if h.lease.timer != nil {
		h.lease.timer.Stop()
	}
	if h.lease.over != nil {
		close(h.lease.over)
	}
	uses = h.lease.uses
	h.lease.uses = nil // leave must not change what is read below
	h.lease.mu.Unlock()
	return uses, true, cause
}

// endIfExpired ends h if its time is up. The timer calls it. So does every caller that asks how
// h is, because after a pause of the whole process the timer may come second.
func (h *hold) endIfExpired() {
	h.lease.mu.Lock()
	passed := !h.lease.state.isOver() && !time.Now().Before(h.lease.end)
	h.lease.mu.Unlock()
	if passed {
		h.finish(observe.EndExpired, nil)
	}
}

// alive returns nil while h lasts, then why it is over.
func (h *hold) alive() error {
	h.lease.mu.Lock()
	lasts := h.lease.state <= stateHeld && time.Now().Before(h.lease.end)
	h.lease.mu.Unlock()
	if lasts {
		return nil
	}
	h.endIfExpired()
	h.lease.mu.Lock()
	defer h.lease.mu.Unlock()
	if err := h.lostLocked(); err != nil {
		return err
	}
	if h.lease.state.isUnlocked() {
		return notHeld(h.key)
	}
	return nil
}

// lostBy returns the sentinel that lost wraps, or nil.
func (l *lease) lostBy() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.cause
}

func (l *lease) lasts() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state < stateEnded
}

func (l *lease) isUnlocked() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.state.isUnlocked()
}

// releaseMutexes lets the next callers of this process in, at each key.
func (h *hold) releaseMutexes() {
	for _, l := range h.locals {
		l.mutex.Release(h)
	}
}

// ownedKeys returns the LOCK_KEYs whose mutexes h owns.
func (h *hold) ownedKeys() (lockKeys []string) {
	for i, l := range h.locals {
		if l.mutex.Owner() == h {
			lockKeys = append(lockKeys, h.keys[i].lockKey)
		}
	}
	return lockKeys
}

// waiters returns how many callers of this process wait behind h.
func (h *hold) waiters() (n int) {
	for _, l := range h.locals {
		n += l.mutex.Waiters()
	}
	return n
}

const (
	minTTL         = 10 * time.Millisecond // MinTTL of package sqllock
	shortestMargin = 2 * time.Millisecond  // covers the rounding of SQLite's clock
	longestMargin  = 500 * time.Millisecond
)

// CheckTTL refuses a time-to-live that cannot make a lease. least is that of the dialect.
func CheckTTL(ttl, least time.Duration) error {
	if least = max(least, minTTL); ttl < least {
		return failure.Invalid("time-to-live %v: it must be at least %v", ttl, least)
	}
	return nil
}

// Margin is how much earlier than its row a lease ends: a tenth of the time-to-live,
// within limits. It covers the drift between the two clocks, which are never compared,
// and the time until a cancelled holder has noticed.
func Margin(ttl time.Duration) time.Duration {
	return min(max(ttl/10, shortestMargin), longestMargin)
}

// leaseEnd returns when the lease of a row ends whose statement was sent at sent or later.
// It is counted on the monotonic clock from before the statement was sent, so it lies
// before the end of the row however long the statement took.
func leaseEnd(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - Margin(ttl))
}
