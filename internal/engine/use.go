package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/failure"
)

// A Use is one use of a hold: what one call that locks has got, and unlocks. The zero Use, and a nil one, hold
// nothing: their methods return ErrNotHeld. All methods are safe for concurrent use.
type Use struct {
	hold   *hold
	key    string // as the caller wrote it
	face   any    // see Face
	mark   atomic.Value
	ctx    useContext
	cancel context.CancelCauseFunc

	unlocked  atomic.Bool // the first Unlock has begun
	unlocking sync.Mutex  // held by the first Unlock
	releasing releaseContext
	result    error // of the first Unlock
}

// begin makes u a use of h whose context is made from ctx, and returns the context that is under it, which
// does not carry u.
//
// Neither this nor u.cancel may be called with a mutex held: ctx may be the context of a use, which asks its
// hold for the time and may thereby end it.
func (u *Use) begin(ctx context.Context, h *hold, key string) context.Context {
	inner, cancel := context.WithCancelCause(ctx)
	u.hold, u.key, u.cancel = h, key, cancel
	u.ctx = useContext{inner, u}
	return inner
}

// Face returns what was given to [Locks.Lock]: what its caller shows to users instead of u.
func (u *Use) Face() any { return u.face }

// Mark is where a package notes what it knows of u: nothing, or one value that is comparable.
func (u *Use) Mark() *atomic.Value { return &u.mark }

// errNoLease is what a use returns that is none.
func errNoLease() error {
	return fmt.Errorf("%w: the lease is nil: check the error that Lock returned", failure.ErrNotHeld)
}

// noLease is the context of a use that is none.
var noLease = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNoLease())
	return ctx
}()

// isNone reports whether u is nil or the zero Use.
func (u *Use) isNone() bool { return u == nil || u.hold == nil }

// alive returns nil while the lease lasts, then why it is over.
func (u *Use) alive() error {
	if u == nil || u.hold == nil {
		return errNoLease()
	}
	if err := u.hold.alive(); err != nil {
		return err
	}
	if u.unlocked.Load() { // while the lock is held through another use
		return notHeld(u.hold.key)
	}
	return nil
}

// Key returns the key as the caller wrote it, or "".
func (u *Use) Key() string {
	if u.isNone() {
		return ""
	}
	return u.key
}

// Keys returns the keys of the lock, as they were written when it was acquired.
func (u *Use) Keys() []string {
	if u.isNone() {
		return nil
	}
	return u.hold.Keys()
}

// Term returns what stands in CLIENT_ID, the fencing token, and when the lease ends unless it is renewed. They are
// zero if u holds nothing.
func (u *Use) Term() (holder string, token int64, end time.Time) {
	if u.isNone() {
		return "", 0, time.Time{}
	}
	return u.hold.term.holder, u.hold.term.token, u.hold.lease.deadline()
}

// Context returns the context of the lease, which carries u and ends with the lease, with what u was locked
// with, and with Unlock.
func (u *Use) Context() context.Context {
	if u.isNone() {
		return noLease
	}
	return &u.ctx
}

// Renew makes the lease last for its time-to-live from now.
func (u *Use) Renew(ctx context.Context) error {
	if err := u.alive(); err != nil {
		return err
	}
	return u.hold.renew(ctx, u.hold.ttl)
}

// RenewFor makes the lease last for ttl from now.
func (u *Use) RenewFor(ctx context.Context, ttl time.Duration) error {
	if err := u.alive(); err != nil {
		return err
	}
	if err := u.hold.locks.checkTTL(u.key, ttl); err != nil {
		return err
	}
	return u.hold.renew(ctx, ttl)
}

// A useContext is the context of a use, which it carries. It reads the clock when
// it is asked. A holder that was stopped past the end of its lease thereby finds its
// context done, whichever runs first: the holder or the timer.
type useContext struct {
	context.Context

	use *Use
}

func (c *useContext) Done() <-chan struct{} {
	c.endIfLost()
	return c.Context.Done()
}

func (c *useContext) Err() error {
	c.endIfLost()
	return c.Context.Err()
}

// endIfLost ends the context if the lease is lost. Another goroutine may have found that out, and
// may not have come to end this context yet: after a pause of the process that can take long
// enough for another holder to be there.
func (c *useContext) endIfLost() {
	c.use.hold.endIfExpired()
	if cause := c.use.hold.lease.lostBy(); cause != nil {
		c.use.cancel(cause)
	}
}

func (c *useContext) Value(key any) any {
	if of, ok := key.(useKey); ok && of.registry == c.use.hold.locks {
		return c
	}
	return c.Context.Value(key)
}

// A useKey is the key under which contexts carry the innermost use of a registry.
type useKey struct{ registry *Locks }

// usesIn returns the uses of some holds of s that ctx carries and that were not unlocked, the innermost first. Their leases
// may be lost.
func (s *Locks) usesIn(ctx context.Context, some func(*hold) bool) (uses []*Use) {
	key := useKey{s}
	found, _ := ctx.Value(key).(*useContext)
	for found != nil {
		if !found.use.unlocked.Load() && some(found.use.hold) {
			uses = append(uses, found.use)
		}
		found, _ = found.Context.Value(key).(*useContext)
	}
	return uses
}

// of selects the holds of a LOCK_KEY.
func of(lockKey string) func(*hold) bool {
	return func(h *hold) bool { return h.covers(lockKey) }
}

// carriedHold returns the hold of a LOCK_KEY that ctx carries by a use that was not unlocked, or nil.
func (s *Locks) carriedHold(ctx context.Context, lockKey string) *hold {
	if uses := s.usesIn(ctx, of(lockKey)); len(uses) > 0 {
		return uses[0].hold
	}
	return nil
}

// Carried returns the innermost use of a LOCK_KEY that ctx carries and that was not unlocked. Its error is
// ErrNotHeld if there is none, or says why that lease is over.
func (s *Locks) Carried(ctx context.Context, key, lockKey string) (*Use, error) {
	for _, use := range s.usesIn(ctx, of(lockKey)) {
		switch err := use.alive(); {
		case err == nil:
			return use, nil
		case !errors.Is(err, failure.ErrNotHeld): // it was unlocked just now
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %q is not locked by this context", failure.ErrNotHeld, key)
}

// AllCarried returns the uses that ctx carries and that were not unlocked, the innermost first. Their leases may be
// lost.
func (s *Locks) AllCarried(ctx context.Context) []*Use {
	return s.usesIn(ctx, func(*hold) bool { return true })
}

// carriedFor returns the hold that a caller with ctx enters again, or nil: the one that has all keys
// that r asks for.
func (s *Locks) carriedFor(ctx context.Context, r *Request) (*hold, error) {
	switch {
	case ctx.Value(useKey{s}) == nil:
		return nil, nil //nolint:nilnil // it carries none
	case !r.joint:
		return s.carriedHold(ctx, r.keys[0].lockKey), nil
	}
	var carried *hold
	for i, one := range r.keys {
		var h *hold
		switch use, err := s.Carried(ctx, one.key, one.lockKey); {
		case err == nil:
			h = use.hold
		case !errors.Is(err, failure.ErrNotHeld):
			return nil, err
		}
		if i > 0 && h != carried {
			return nil, failure.Invalid("the context holds some of the keys %s, and not all by one lease: it would wait for itself", r.key)
		}
		carried = h
	}
	return carried, nil
}
