package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/fair"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/observe"
)

// A holdConfig is what all holds of a registry have in common.
type holdConfig struct {
	table        *locktable.Table
	onEnd        func(*hold)                  // called once when a hold is over
	onKept       func(context.Context, *hold) // called when the row stays for a minimum hold after the last Unlock
	onLeftover   func()                       // called when a row may be left that has no holder
	renewOverdue func(context.Context, *hold) // called before the row is pinned
	leastTTL     time.Duration                // the shortest one that a lease can have
	fixedTTL     time.Duration                // the only one that a lease can have, or 0
	handOff      bool                         // Unlock hands the row over to the next local waiter
	idle         time.Duration                // IdleBetweenTries: how often other processes poll
	maxHold      time.Duration                // after which only its caller makes a lease last longer, or 0
}

// An entry is what all holds of one LOCK_KEY in a registry share.
type entry struct {
	mutex  fair.Mutex[*hold]
	rivals rivals
	streak streaks
	// takenUntil is when the lease may end that the last attempt has found. Only the
	// owner of mutex uses it.
	takenUntil time.Time
	// outage is what the first waiter has met, if waiters wait through outages, or nil. Only
	// the owner of mutex changes it.
	outage atomic.Pointer[outage]
	// pinned is the holder of the row that the last attempt has found, if its lease was over, or nil.
	pinned atomic.Pointer[string]
	// named is when its key was written to the table of names, as [naming.since] tells it, or 0: a Time would need three
	// times the room. mu of [Locks] guards it.
	named time.Duration
	// handle is what [Locks.Obtain] returns. Only Obtain uses it: a hold knows no handle.
	handle handle
}

// A term is the time for which this process has a row, from its acquisition to its
// release. One hold hands it over to the next.
type term struct {
	holder string    // what stands in CLIENT_ID
	token  int64     // the fencing token of the hold that has the row
	since  time.Time // before the statement that acquired the row was sent
	end    time.Time // when the lease ends; zero until the row is acquired
	passed int       // how often the row was handed over
}

// A state is how far a hold has come. It only grows.
type state int

const (
	waiting   state = iota // for the row
	held                   // by its users
	unlocking              // the last Unlock has begun
	ended                  // before an Unlock, for a cause
	unlocked               // after the last Unlock had begun; it may have a cause too
)

// isOver reports whether a hold has ended.
func (s state) isOver() bool { return s >= ended }

// isUnlocked reports whether the last Unlock has begun.
func (s state) isUnlocked() bool { return s == unlocking || s == unlocked }

// A hold is one acquisition of a lock by this process: one row, and its users, which are
// the lease of the caller that acquired it and those of callers that entered again. The
// hold starts once the row is acquired. It is over exactly once: by the last Unlock, by
// the clock, by finding the row gone, or by Close of the registry.
//
// Its fields are set before it starts, except for those that mu guards. No other mutex
// is taken while mu is held.
type hold struct {
	Request                 // of the caller that acquired; mu guards minHold
	term       term         // mu guards its end
	config     *holdConfig  // of the registry
	entries    []*entry     // of the LOCK_KEYs
	entry      [1]*entry    // the memory of entries, unless the lock is a joint one
	acquired   time.Time    // before the statement was sent, or when the row was handed over
	renewUntil time.Time    // until when the lease may last, unless its caller renews it; zero means always
	arrived    uint64       // its place among all callers that have waited
	observed   *observation // of the call that locks, or nil

	mu        sync.Mutex
	rowEnd    time.Time // when the row expires at the earliest
	rowEndMax time.Time // when the row expires at the latest, if it was asked to outlast ttl
	sent      time.Time // when the database was asked, while the caller waits for its answer
	timer     *time.Timer
	users     []*Use
	first     [1]*Use       // the memory of users, which mostly is one
	ended     chan struct{} // closed when it is over; nil until a release waits
	guarded   bool          // a transaction of the caller's may have the row pinned
	pinnedBy  int           // how many of ExecuteLockedTx have
	granted   time.Time     // when the caller got the lease, from which the minimum hold counts; or zero
	state     state
	cause     error // why it is over, or nil after Unlock
	why       observe.EndReason
	failed    error // why the last renewal failed, if none has succeeded since
}

func newHold(c *holdConfig, r Request) *hold {
	return &hold{Request: r, config: c, term: term{holder: c.table.NewHolder()}}
}

// claim is what the table has to know of the row.
func (h *hold) claim() locktable.Claim {
	c := locktable.Claim{LockKey: h.lockKey, Holder: h.term.holder, TTL: h.ttl}
	if h.joint != nil {
		c.More = h.joint.more
	}
	return c
}

// lastingClaim is the claim with a TTL that covers all the time that the row may last.
func (h *hold) lastingClaim() locktable.Claim {
	c := h.claim()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.rowEndMax.IsZero() {
		c.TTL = max(c.TTL, time.Until(h.rowEndMax))
	}
	return c
}

func (h *hold) currentTerm() term {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.term
}

func (h *hold) deadline() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.term.end
}

// row describes h, which may be nil, to a caller of this process that has to wait.
func (h *hold) row() locktable.Row {
	if h == nil {
		return locktable.Row{}
	}
	h.mu.Lock()
	end, state := h.rowEnd, h.state
	h.mu.Unlock()
	if state == waiting {
		return locktable.Row{}
	}
	return locktable.Row{Holder: h.term.holder, Left: time.Until(end)}
}

// isTooLate reports whether the lease of a row that was acquired just now would be over.
func (h *hold) isTooLate() bool { return !time.Now().Before(leaseEnd(h.acquired, h.ttl)) }

// start begins the lease of the row that h has acquired, or was handed over. give
// follows once the registry knows h.
func (h *hold) start(u *Use) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.term.passed > 0 {
		h.rowEnd = h.term.end.Add(margin(h.ttl))
	} else {
		h.term.end, h.rowEnd = leaseEnd(h.acquired, h.ttl), h.acquired.Add(h.ttl)
	}
	if h.config.maxHold > 0 {
		h.renewUntil = h.acquired.Add(h.config.maxHold)
	}
	h.users = append(h.first[:0], u)
	h.state = held
}

// give marks the lease as granted, unless its caller has given up, and has h end in time. If h is over, it returns why.
func (h *hold) give(gaveUp bool) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state >= ended {
		return h.lostLocked()
	}
	h.timer = time.AfterFunc(time.Until(h.term.end), h.check)
	if !gaveUp {
		h.granted = time.Now() // not when the statement was sent: the row may be younger
	}
	return nil
}

// enter adds a user that enters the lock again. It returns false if h is over, or its last Unlock has begun.
func (h *hold) enter(u *Use) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != held {
		return false
	}
	h.users = append(h.users, u)
	return true
}

// leave removes a user that unlocks. The last one stays until h is over, so that it is notified if the lease ends
// before the row is released: then last is true. It returns why h is over if it is.
func (h *hold) leave(u *Use) (last bool, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.state != held:
		return false, h.lostLocked()
	case len(h.users) == 1:
		h.state = unlocking
		return true, nil
	}
	h.users = slices.DeleteFunc(h.users, func(other *Use) bool { return other == u })
	return false, nil
}

// keepFor has the row stay for the minimum hold that a user has asked for who has entered again.
func (h *hold) keepFor(minHold time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.minHold = max(h.minHold, minHold)
}

// renew makes the row, then the lease, last for ttl from now, because its caller wants that. It waits for a pinned row.
func (h *hold) renew(ctx context.Context, ttl time.Duration) error {
	return h.renewBy(ctx, ttl, leaseEnd, h.sendRenewal)
}

func (h *hold) sendRenewal(ctx context.Context, c locktable.Claim, late func()) (bool, error) {
	return h.config.table.Renew(ctx, c, locktable.PinnedTimeout, late)
}

// renewForEntry renews for a caller that enters again. The caller may be in the transaction that has the
// row pinned, so renewForEntry does not wait for that: its error is failure.ErrPinned then, or nil.
func (h *hold) renewForEntry(ctx context.Context) error {
	h.mu.Lock()
	guarded, pinned := h.guarded, h.pinnedBy > 0
	h.mu.Unlock()
	switch {
	case pinned:
		return h.alive()
	case guarded:
		return h.renewBy(ctx, h.ttl, h.renewedEnd, h.config.table.RenewUnpinned)
	default:
		return h.renewBy(ctx, h.ttl, h.renewedEnd, h.sendRenewal)
	}
}

// notePin counts the transactions of ExecuteLockedTx that have the row pinned.
func (h *hold) notePin(more int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.pinnedBy += more
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
		return h.notHeld() // the last Unlock has begun just now
	}
	sent, c := time.Now(), h.claim()
	c.TTL = ttl
	bounded, cancel := context.WithDeadline(ctx, h.deadline())
	defer cancel()
	renewed, err := send(bounded, c, func() {
		if errors.Is(h.alive(), failure.ErrLockLost) {
			h.cleanUp(ctx)
		}
	})
	h.expectRowFor(ttl)
	switch {
	case err == nil && renewed:
		h.extend(endOf(sent, ttl), sent.Add(ttl))
	case err == nil && h.isUnlocked():
		return h.notHeld() // its own Unlock was faster
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
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state == unlocking || h.state == unlocked {
		return false
	}
	if until := time.Now().Add(ttl); ttl > h.ttl && until.After(h.rowEndMax) {
		h.rowEndMax = until
	}
	return true
}

// mayOutlastTTL reports whether the row was asked to last for longer than the time-to-live.
func (h *hold) mayOutlastTTL() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return !h.rowEndMax.IsZero()
}

// extend moves the ends of the lease and of the row. Renewals may overlap and arrive in
// any order. None of them shortens the row, so the latest end counts.
func (h *hold) extend(end, rowEnd time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state >= ended || !time.Now().Before(h.term.end) {
		return
	}
	if rowEnd.After(h.rowEnd) {
		h.rowEnd = rowEnd
	}
	h.failed = nil
	if end.After(h.term.end) {
		h.term.end = end
		if h.timer != nil {
			h.timer.Reset(time.Until(end))
		}
	}
}

// cleanUp deletes the row, whatever has become of ctx. If it cannot, the table deletes it
// later.
func (h *hold) cleanUp(ctx context.Context) {
	h.config.table.CleanUp(ctx, h.lastingClaim())
	h.config.onLeftover()
}

// leaveRow has the table delete the row later.
func (h *hold) leaveRow() {
	h.config.table.AddLeftover(h.lastingClaim())
	h.config.onLeftover()
}

// finish ends h: it notifies the users, lets the next caller of this process in, and reports the
// end, with the error of the release. It returns false if h was over already.
func (h *hold) finish(why observe.EndReason, released error) bool {
	if !h.endUse(why) {
		return false
	}
	if why != observe.EndUnlocked && why.Lost() && (h.rowMayOutlast() || h.isJoint() && !h.isUnlocked()) { // Unlock deletes all rows that are left
		h.leaveRow()
	}
	h.releaseMutexes()
	h.config.onEnd(h)
	if h.observed != nil {
		h.reportEnd(why, released)
	}
	return true
}

// reportEnd tells the observers why h, which is over, has ended.
func (h *hold) reportEnd(why observe.EndReason, released error) {
	h.observed.reportEnd(observe.LeaseEnd{
		Key: h.key, Holder: h.term.holder, Token: h.term.token, Reason: why, Err: cmp.Or(h.lost(), released),
		Held: time.Since(h.acquired), Left: max(0, time.Until(h.deadline())), AutoRenew: h.autoRenew,
	})
}

// rowMayOutlast reports whether the row may be there long after the lease, because a
// renewal for longer than ttl had no answer.
func (h *hold) rowMayOutlast() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.rowEndMax) > h.ttl
}

// endUse is the first half of finish. The users are notified without mu: the context of a
// user asks its hold for the time, and may thereby end it.
func (h *hold) endUse(why observe.EndReason) bool {
	var cause error
	if why != observe.EndUnlocked {
		cause = causeOf(why)
	}
	h.mu.Lock()
	switch h.state {
	case ended, unlocked:
		h.mu.Unlock()
		return false
	case unlocking:
		h.state = unlocked
	default:
		h.state = ended
	}
	h.cause, h.why = cause, why
	if h.timer != nil {
		h.timer.Stop()
	}
	if h.ended != nil {
		close(h.ended)
	}
	users := h.users
	h.users = nil // remove must not change what is read below
	h.mu.Unlock()
	for _, u := range users {
		u.cancel(cause)
	}
	return true
}

// check ends h if its time is up. The timer calls it. So does every caller that asks how
// h is, because after a pause of the whole process the timer may come second.
func (h *hold) check() {
	h.mu.Lock()
	passed := !h.state.isOver() && !time.Now().Before(h.term.end)
	h.mu.Unlock()
	if passed {
		h.finish(observe.EndExpired, nil)
	}
}

// alive returns nil while h lasts, then why it is over.
func (h *hold) alive() error {
	h.mu.Lock()
	lasts := h.state <= held && time.Now().Before(h.term.end)
	h.mu.Unlock()
	if lasts {
		return nil
	}
	h.check()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.lostLocked(); err != nil {
		return err
	}
	if h.state.isUnlocked() {
		return h.notHeld()
	}
	return nil
}

// lost returns why h is over, or nil if it is not or was unlocked.
func (h *hold) lost() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lostLocked()
}

// lostBy returns the sentinel that lost wraps, or nil.
func (h *hold) lostBy() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.cause
}

func (h *hold) lostLocked() error {
	if h.cause == nil {
		return nil
	}
	err := fmt.Errorf("%w: %q (%s)", h.cause, h.key, h.term.holder)
	if text := h.lossLocked(); text != "" {
		err = fmt.Errorf("%w: %s", err, text)
	}
	return err
}

// lossLocked says why a lease is lost, or is "".
func (h *hold) lossLocked() string {
	switch {
	case h.why == observe.EndTaken:
		return "its row was deleted, or another process has taken it over"
	case h.why != observe.EndExpired:
		return ""
	case !h.autoRenew:
		return fmt.Sprintf("its time-to-live of %v ran out, and nothing renews it", h.ttl)
	case !h.renewUntil.IsZero() && !h.term.end.Before(h.renewUntil):
		return "MaxHold is over"
	case h.failed != nil:
		// The error is not wrapped: that the lock is lost is no error of the database.
		return "it was not renewed in time: " + strings.TrimPrefix(h.failed.Error(), "sqllock: ")
	default:
		return "it was not renewed in time: this process may have stood still"
	}
}

// noteFailure notes that a renewal has failed.
func (h *hold) noteFailure(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.state.isOver() {
		h.failed = err
	}
}

func (h *hold) notHeld() error {
	return fmt.Errorf("%w: %q has been unlocked", failure.ErrNotHeld, h.key)
}

func (h *hold) lasts() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state < ended
}

func (h *hold) isUnlocked() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.state.isUnlocked()
}

// releaseMutexes lets the next callers of this process in, at each key.
func (h *hold) releaseMutexes() {
	for _, e := range h.entries {
		e.mutex.Release(h)
	}
}

// waiters returns how many callers of this process wait behind h.
func (h *hold) waiters() (n int) {
	for _, e := range h.entries {
		n += e.mutex.Waiters()
	}
	return n
}

// meets reports whether h and other have a key in common.
func (h *hold) meets(other *hold) bool {
	for i := range h.count() {
		if other.covers(h.keyAt(i).lockKey) {
			return true
		}
	}
	return false
}

// claimOf is the claim of the one row that h waits for.
func (h *hold) claimOf(row locktable.Row) locktable.Claim {
	c := h.claim()
	if h.joint != nil {
		c.LockKey, c.More = row.LockKey, nil
	}
	return c
}

// place returns which of the keys of h a row is of: the first if it is not known.
func (h *hold) place(row locktable.Row) int {
	if h.joint != nil {
		if i, found := h.find(row.LockKey); found {
			return i
		}
	}
	return 0
}

// ownerAt describes the hold of this process that has the i-th key of h.
func (h *hold) ownerAt(i int) locktable.Row {
	row := h.entries[i].mutex.Owner().row()
	row.LockKey = h.keyAt(i).lockKey
	return row
}

// seenAt returns the holder of the i-th key of h that this process has seen last, which may be one of its own, and the error
// of the outage in which callers wait, who has the row of a lease that is over, or nil.
func (h *hold) seenAt(ctx context.Context, i int) (holder string, err error) {
	e := h.entries[i]
	if o := e.outage.Load(); o != nil {
		err = o.last
	}
	if own := e.mutex.Owner().row(); own.Holder != "" {
		return own.Holder, err
	}
	if pinned := e.pinned.Load(); pinned != nil && err == nil {
		return *pinned, h.whoPins(ctx, i)
	}
	last := e.rivals.last()
	return last.holder(), err
}

// noteOutage has those who queue behind h know of an outage, or, if o is nil, of its end.
func (h *hold) noteOutage(o *outage) {
	for _, e := range h.entries {
		if e.outage.Load() != o && e.mutex.Owner() == h {
			e.outage.Store(o)
		}
	}
}

// noteSent notes that the database is asked for the row, or for what must be known before.
func (h *hold) noteSent() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent = time.Now()
}

// noteAnswered notes that it has answered.
func (h *hold) noteAnswered() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.sent = time.Time{}
}

// unanswered returns for how long a caller that waits for the row has had no answer: 0 if it does not wait for one.
func (h *hold) unanswered() time.Duration {
	if h == nil {
		return 0
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.state != waiting || h.sent.IsZero() {
		return 0
	}
	return time.Since(h.sent)
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

// margin is how much earlier than its row a lease ends: a tenth of the time-to-live,
// within limits. It covers the drift between the two clocks, which are never compared,
// and the time until a cancelled holder has noticed.
func margin(ttl time.Duration) time.Duration {
	return min(max(ttl/10, shortestMargin), longestMargin)
}

// leaseEnd returns when the lease of a row ends whose statement was sent at sent or later.
// It is counted on the monotonic clock from before the statement was sent, so it lies
// before the end of the row however long the statement took.
func leaseEnd(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - margin(ttl))
}
