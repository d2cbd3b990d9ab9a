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
	holder   string
	ttl      time.Duration
	sent     time.Time // before the acquire statement was sent
	token    int64     // the fencing token
	passed   int       // how often the row was handed on before
	since    time.Time // when this process acquired the row
	// inherited is when the lease ends of a row that was handed on to it
	inherited time.Time
	// renewable is until when heartbeats may renew it; zero means always
	renewable time.Time

	mu       sync.Mutex
	end      time.Time // when it ends for its holders; zero while contending
	timer    *time.Timer
	leases   []*Lease
	atLeast  time.Duration // the longest UnlockAfter
	guarded  bool          // a transaction of the user's may have the row pinned
	unlocked bool          // the last Unlock has begun
	over     bool
	cause    error // why it is over, or nil after Unlock
}

func newHold(l *JdbcLock, e *entry) *hold {
	return &hold{registry: l.registry, entry: e, holder: l.registry.repository.NewHolder(), ttl: l.ttl}
}

func (h *hold) key() string { return h.entry.lock.key }

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
	end := h.deadline()
	if end.IsZero() {
		return Row{} // it is still contending itself
	}
	return Row{Holder: h.holder, Left: time.Until(end)}
}

// begin starts the lease of an acquired row, unless it is over already.
func (h *hold) begin(ctx context.Context) (*Lease, error) {
	lease := h.newLease(ctx)
	h.mu.Lock()
	h.end = h.inherited
	if h.end.IsZero() {
		h.end = leaseEnd(h.sent, h.ttl)
	}
	h.timer = time.AfterFunc(time.Until(h.end), h.check)
	h.leases = append(h.leases, lease)
	open := h.registry.enlist(h)
	h.mu.Unlock()
	if !open {
		h.finish(ErrClosed)
	}
	err := h.alive()
	if err == nil {
		return lease, nil
	}
	h.abandon(ctx)
	if errors.Is(err, ErrLockLost) {
		err = tooLate(h.key())
	}
	return nil, err
}

// late tells whether the lease of a row that was just acquired would be over.
func (h *hold) late() bool { return !time.Now().Before(leaseEnd(h.sent, h.ttl)) }

// abandon sees to it that the row goes, whatever has become of ctx.
func (h *hold) abandon(ctx context.Context) {
	h.registry.repository.abandon(ctx, h.key(), h.holder, h.ttl)
}

// reenter enters the lock once more, for a context that carries h. It returns
// neither a lease nor an error if h was unlocked: then the caller is an owner
// like any other.
func (h *hold) reenter(ctx context.Context) (*Lease, error) {
	if _, ok := h.entry.mutex.Enter(h); !ok {
		return nil, h.lost()
	}
	if err := h.renew(ctx); err != nil && !errors.Is(err, ErrPinned) { // a pinned row is nobody else's
		_ = h.leave(ctx, 0) // what ends the outer lease here ended the renewal too
		return nil, err
	}
	lease := h.newLease(ctx)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.leases = append(h.leases, lease)
	if h.over {
		lease.cancel(h.cause)
	}
	return lease, nil
}

// newLease returns a lease whose context is made from ctx. It must not be called
// with h.mu held: ctx may be a context of h that asks for the time.
func (h *hold) newLease(ctx context.Context) *Lease {
	carrying := context.WithValue(ctx, holdKey{h.registry, h.key()}, h)
	inner, cancel := context.WithCancelCause(carrying)
	return &Lease{hold: h, ctx: &leaseContext{inner, h}, cancel: cancel}
}

// renew moves the end of the row, then of the lease.
func (h *hold) renew(ctx context.Context) error {
	if err := h.alive(); err != nil {
		return err
	}
	sent := time.Now()
	bounded, cancel := context.WithDeadline(ctx, h.deadline())
	defer cancel()
	renewed, err := answered(bounded, "renew", h.key(), func() (bool, error) {
		return h.registry.repository.Renew(bounded, h.key(), h.holder, h.ttl)
	})
	switch {
	case err == nil && renewed:
		h.extend(leaseEnd(sent, h.ttl))
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

// extend moves the end of the lease. Renewals may overlap: each of them makes the
// row last at least until its own end, so the latest counts.
func (h *hold) extend(end time.Time) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.over && end.After(h.end) && time.Now().Before(h.end) {
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
	repository := h.registry.repository
	bounded, cancel := context.WithDeadline(context.WithoutCancel(ctx), h.deadline())
	defer cancel()
	left := time.Until(h.sent.Add(h.atLeast)) // what is missing of the minimum hold
	released, err := answered(bounded, "release", h.key(), func() (bool, error) {
		if left > 0 {
			return repository.leave(bounded, h.key(), h.holder, h.ttl, max(left, time.Millisecond))
		}
		return repository.Delete(bounded, h.key(), h.holder)
	})
	switch {
	case err != nil:
		if left <= 0 { // else the row is to stay
			repository.abandonLater(h.key(), h.holder, h.ttl)
		}
		h.finish(nil)
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

// shut ends h for Close, and releases its row.
func (h *hold) shut(ctx context.Context) error {
	if !h.finish(ErrClosed) {
		return nil
	}
	_, err := answered(ctx, "release", h.key(), func() (bool, error) {
		return h.registry.repository.Delete(ctx, h.key(), h.holder)
	})
	if err != nil {
		h.registry.repository.abandonLater(h.key(), h.holder, h.ttl)
	}
	return err
}

// finish makes h over: it tells the holders first, then lets the next caller of
// this process in. It returns false if h was over already.
func (h *hold) finish(cause error) bool {
	if !h.conclude(cause) {
		return false
	}
	h.entry.mutex.Release(h)
	h.registry.dismiss(h)
	return true
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
	leases := h.leases
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

// A leaseContext is a context that looks at the clock when asked, so that a
// holder that was stopped past its lease's end finds it done, whichever runs
// first: the holder or the timer.
type leaseContext struct {
	context.Context
	hold *hold
}

func (c *leaseContext) Done() <-chan struct{} {
	c.hold.check()
	return c.Context.Done()
}

func (c *leaseContext) Err() error {
	c.hold.check()
	return c.Context.Err()
}
