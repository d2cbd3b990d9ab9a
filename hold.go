package sqllock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"
)

// A hold is one acquisition of a lock by this process: one row, and the leases of
// those who entered through it. It begins once the row is acquired and is over
// exactly once: by the last Unlock, by the clock, by finding the row gone, or by
// the registry's Close.
//
// Locks are taken in the order hold.mu, Registry.mu.
type hold struct {
	registry *Registry
	entry    *entry
	name     string // the key as the caller wrote it who acquired the row
	lockKey  string // what stands in LOCK_KEY
	holder   string
	ttl      time.Duration
	// autoRenew says that heartbeats renew it
	autoRenew bool
	sent      time.Time // before the acquire statement was sent
	token     int64     // the fencing token
	passed    int       // how often the row was handed on before
	since     time.Time // when this process acquired the row
	// inherited is when the lease ends of a row that was handed on to it
	inherited time.Time
	// renewable is until when heartbeats may renew it; zero means always
	renewable time.Time

	mu       sync.Mutex
	end      time.Time // when it ends for its holders; zero while contending
	rowEnd   time.Time // when the row expires at the earliest
	longest  time.Time // when the row expires at the latest, if it was asked to outlast ttl
	timer    *time.Timer
	leases   []*Lease
	first    [1]*Lease     // where leases mostly has room enough
	done     chan struct{} // closed when it is over, if somebody asked
	tenure   tenure        // of its release
	atLeast  time.Duration // the longest UnlockAfter
	guarded  bool          // a transaction of the user's may have the row pinned
	unlocked bool          // the last Unlock has begun
	over     bool
	cause    error // why it is over, or nil after Unlock
}

func newHold(l *JdbcLock) *hold {
	return &hold{
		registry: l.registry, name: l.key, lockKey: l.lockKey, holder: l.registry.repository.NewHolder(),
		ttl: l.ttl, autoRenew: l.autoRenew,
	}
}

func (h *hold) key() string { return h.name }

// params are what statements about the row need.
func (h *hold) params() params {
	return h.registry.repository.paramsOf(h.name, h.lockKey, h.holder, h.ttl)
}

func (h *hold) deadline() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.end
}

// row describes h, which may be nil, to a caller of this process who has to wait.
func (h *hold) row() Row {
	if h == nil {
		return Row{}
	}
	h.mu.Lock()
	end := h.rowEnd
	h.mu.Unlock()
	if end.IsZero() {
		return Row{} // it is still contending itself
	}
	return Row{Holder: h.holder, Left: time.Until(end)}
}

// begin starts the lease of an acquired row, unless it is over already.
func (h *hold) begin(lease *Lease) error {
	h.mu.Lock()
	h.end = h.inherited
	if h.end.IsZero() {
		h.end = leaseEnd(h.sent, h.ttl)
	}
	h.rowEnd = h.end.Add(margin(h.ttl))
	h.timer = time.AfterFunc(time.Until(h.end), h.check)
	h.leases = append(h.first[:0], lease)
	open := h.registry.enlist(h)
	h.mu.Unlock()
	if !open {
		h.finish(ErrClosed)
	}
	err := h.alive()
	if err == nil {
		return nil
	}
	h.abandon(lease.ctx.Context)
	if errors.Is(err, ErrLockLost) {
		err = tooLate(h.key())
	}
	return err
}

// late tells whether the lease of a row that was just acquired would be over.
func (h *hold) late() bool { return !time.Now().Before(leaseEnd(h.sent, h.ttl)) }

// abandon sees to it that the row goes, whatever has become of ctx.
func (h *hold) abandon(ctx context.Context) {
	h.registry.repository.abandon(ctx, h.lastingParams())
}

// lastingParams are params whose ttl covers all the time that the row may last.
func (h *hold) lastingParams() params {
	p := h.params()
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.longest.IsZero() {
		p.ttl = max(p.ttl, time.Until(h.longest))
	}
	return p
}

// reenter enters the lock once more, for a context that carries h. It returns
// neither a lease nor an error if h was unlocked: then the caller is an owner
// like any other.
func (h *hold) reenter(ctx context.Context, key string) (*Lease, error) {
	if _, ok := h.entry.mutex.Enter(h); !ok {
		return nil, h.lost()
	}
	if err := h.renew(ctx, h.ttl); err != nil && !errors.Is(err, ErrPinned) { // no other holder has a pinned row
		_ = h.leave(ctx, 0) // what ends the outer lease here ended the renewal too
		return nil, err
	}
	lease, _ := h.newLease(ctx, key)
	h.mu.Lock()
	h.leases = append(h.leases, lease)
	over, cause := h.over, h.cause
	h.mu.Unlock()
	if over {
		lease.cancel(cause)
	}
	return lease, nil
}

// newLease returns a lease whose context is made from ctx, and the one that is under it,
// which does not carry the lease. Neither it nor the lease's
// cancel may be called with h.mu or Registry.mu held: ctx may be a lease's context,
// which asks its hold for the time, and thereby may end it.
func (h *hold) newLease(ctx context.Context, key string) (*Lease, context.Context) {
	inner, cancel := context.WithCancelCause(ctx)
	lease := &Lease{hold: h, key: key, cancel: cancel}
	lease.ctx = leaseContext{inner, lease}
	return lease, inner
}

// renew makes the row, then the lease, last for ttl from now.
func (h *hold) renew(ctx context.Context, ttl time.Duration) error {
	if err := h.alive(); err != nil {
		return err
	}
	if !h.mayLastFor(ttl) {
		return h.notHeld() // it has begun this instant
	}
	sent, p := time.Now(), h.params()
	p.left = ttl
	bounded, cancel := context.WithDeadline(ctx, h.deadline())
	defer cancel()
	renewed, err := h.registry.repository.renew(bounded, p, longestPin, func() {
		if errors.Is(h.alive(), ErrLockLost) {
			h.abandon(ctx)
		}
	})
	h.mayLastFor(ttl)
	switch {
	case err == nil && renewed:
		h.extend(leaseEnd(sent, ttl), sent.Add(ttl))
	case err == nil && h.isUnlocked():
		return h.notHeld() // its own Unlock was faster
	case err == nil:
		h.finish(ErrLockLost)
	}
	if lost := h.alive(); lost != nil {
		if renewed && !errors.Is(lost, ErrNotHeld) {
			// The answer came too late: nobody holds the row any more, nor is
			// anybody about to delete it, as Unlock is.
			h.abandon(ctx)
		}
		return lost
	}
	return err
}

// mayLastFor notes that the row is asked to last for ttl from now, if that is longer
// than others expect of it. It returns false if the last Unlock has begun: then the row
// may be about to be handed on.
func (h *hold) mayLastFor(ttl time.Duration) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.unlocked {
		return false
	}
	if until := time.Now().Add(ttl); ttl > h.ttl && until.After(h.longest) {
		h.longest = until
	}
	return true
}

// extend moves the ends of the lease and of the row. Renewals may overlap and arrive
// in any order: none of them shortens the row, so the latest end counts.
func (h *hold) extend(end, rowEnd time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.over || !time.Now().Before(h.end) {
		return
	}
	if rowEnd.After(h.rowEnd) {
		h.rowEnd = rowEnd
	}
	if end.After(h.end) {
		h.end = end
		h.timer.Reset(time.Until(end))
	}
}

// leave takes back one entry, and releases the row with the last.
func (h *hold) leave(ctx context.Context, atLeast time.Duration) error {
	if err := h.alive(); err != nil {
		return err
	}
	h.mu.Lock()
	h.atLeast = max(h.atLeast, atLeast)
	h.mu.Unlock()
	switch depth, ok := h.entry.mutex.Leave(h); {
	case !ok:
		return h.lost() // it ended this instant
	case depth > 0:
		return nil
	}
	h.mu.Lock()
	h.unlocked = true
	h.mu.Unlock()
	return h.release(ctx)
}

// release releases the row, then the local mutex. It has the time that the lease
// has left: then the row is about to expire anyway.
func (h *hold) release(ctx context.Context) error {
	if h.handOn(ctx) {
		return nil
	}
	h.tenure = tenure{h, context.WithoutCancel(ctx)}
	released, err := h.releaseRow(&h.tenure) //nolint:contextcheck // it is made from ctx
	switch {
	case err != nil:
		h.finish(nil)
		if closed := h.lost(); errors.Is(closed, ErrClosed) {
			return closed // by Close, meanwhile, which sees to the row
		}
		if !errors.Is(err, ErrDatabase) && !errors.Is(err, ErrPinned) { // the lease's end, not the caller's, cut it short
			err = fmt.Errorf("%w: %w", ErrDatabase, err)
		}
		return err
	case !released:
		h.finish(ErrLockLost)
		return h.lost()
	default:
		h.finish(nil)
		return nil
	}
}

// releaseRow deletes the row, or leaves it for what is missing of the minimum hold.
func (h *hold) releaseRow(ctx context.Context) (released bool, err error) {
	if left := time.Until(h.sent.Add(h.atLeast)); left > 0 {
		return h.registry.repository.leave(ctx, h.params(), max(left, time.Millisecond))
	}
	return h.removeRow(ctx)
}

// removeRow deletes the row, or sees to it that it is deleted later.
func (h *hold) removeRow(ctx context.Context) (removed bool, err error) {
	repository := h.registry.repository
	got, err := repository.remove(ctx, h.params())
	if err != nil {
		repository.abandonLater(h.lastingParams())
	}
	return got.done(), err
}

// finish makes h over: it tells the holders first, then lets the next caller of
// this process in. It returns false if h was over already.
func (h *hold) finish(cause error) bool {
	if !h.conclude(cause) {
		return false
	}
	if errors.Is(cause, ErrLockLost) && h.outlasted() {
		h.registry.repository.abandonLater(h.lastingParams())
	}
	h.entry.mutex.Release(h)
	h.registry.dismiss(h)
	return true
}

// outlasted reports whether the row may be there long after the lease: a renewal for
// longer than ttl had no answer.
func (h *hold) outlasted() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Until(h.longest) > h.ttl
}

// conclude is the first half of finish.
func (h *hold) conclude(cause error) bool {
	h.mu.Lock()
	if h.over {
		h.mu.Unlock()
		return false
	}
	h.over, h.cause = true, cause
	h.timer.Stop()
	if h.done != nil {
		close(h.done)
	}
	leases := h.leases
	h.leases = nil // forget must not change what is read below
	h.mu.Unlock()
	for _, lease := range leases {
		lease.cancel(cause)
	}
	return true
}

// check ends h if its time is up. The timer calls it, and everyone who asks how h
// is, because after a pause of the whole process the timer may come second.
func (h *hold) check() {
	h.mu.Lock()
	passed := !h.over && !time.Now().Before(h.end)
	h.mu.Unlock()
	if passed {
		h.finish(ErrLockLost)
	}
}

// alive returns nil while h lasts, then why it is over.
func (h *hold) alive() error {
	h.check()
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.lostLocked(); err != nil {
		return err
	}
	if h.unlocked {
		return h.notHeld()
	}
	return nil
}

func (h *hold) isOver() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.over
}

func (h *hold) isUnlocked() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.unlocked
}

func (h *hold) notHeld() error {
	return fmt.Errorf("%w: %q has been unlocked", ErrNotHeld, h.key())
}

// lost returns why h is over, or nil if it is not or was unlocked.
func (h *hold) lost() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.lostLocked()
}

func (h *hold) lostLocked() error {
	if h.cause == nil {
		return nil
	}
	return fmt.Errorf("%w: %q (%s)", h.cause, h.key(), h.holder)
}

// forget drops a lease that was unlocked.
func (h *hold) forget(lease *Lease) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = slices.DeleteFunc(h.leases, func(l *Lease) bool { return l == lease })
}

// ended returns a channel that is closed when h is over.
func (h *hold) ended() <-chan struct{} {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.done == nil {
		h.done = make(chan struct{})
		if h.over {
			close(h.done)
		}
	}
	return h.done
}
