package sqllock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A Lease is a lock that is held for a time. Unlock gives it back. It ends by itself at
// its Deadline. A lease that has ended before Unlock, or whose row was removed or taken,
// is lost: its context ends, and every method returns [ErrLockLost].
//
// A nil Lease, which comes with an error of Lock, holds nothing: Unlock, Renew, RenewFor
// and Guard return [ErrNotHeld], so that a deferred Unlock does no harm before the error
// is checked. Its Key and Holder are "", its Token is 0, which is lower than any other,
// its Deadline is the zero time, and its Context has ended with cause ErrNotHeld.
//
// All methods are safe for concurrent use.
type Lease struct {
	hold   *hold
	key    string // as the caller wrote it
	ctx    leaseContext
	cancel context.CancelCauseFunc

	unlock    sync.Once
	unlocked  atomic.Bool // the first Unlock has begun
	releasing releaseContext
	result    error // of the first Unlock
}

// newLease returns a lease whose context is made from ctx, and the one that is under it,
// which does not carry the lease.
//
// Neither this nor the cancel function of the lease may be called with a mutex held: ctx
// may be the context of a lease, which asks its hold for the time and may thereby end it.
func newLease(ctx context.Context, h *hold, key string) (*Lease, context.Context) {
	inner, cancel := context.WithCancelCause(ctx)
	lease := &Lease{hold: h, key: key, cancel: cancel}
	lease.ctx = leaseContext{inner, lease}
	return lease, inner
}

// errNoLease is what a nil lease returns.
func errNoLease() error {
	return fmt.Errorf("%w: the lease is nil: check the error that Lock returned", ErrNotHeld)
}

// noLease is the context of a nil lease.
var noLease = func() context.Context {
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errNoLease())
	return ctx
}()

// isNone reports whether l is nil or a zero Lease.
func (l *Lease) isNone() bool { return l == nil || l.hold == nil }

// end implements user.
func (l *Lease) end(cause error) { l.cancel(cause) }

// alive returns nil while the lease lasts, then why it is over.
func (l *Lease) alive() error {
	if l.isNone() {
		return errNoLease()
	}
	if err := l.hold.alive(); err != nil {
		return err
	}
	if l.unlocked.Load() { // while the lock is held through another lease
		return l.hold.notHeld()
	}
	return nil
}

// Key returns the key as the caller wrote it. That of a joint lock names several of its keys, for
// messages: see [Lease.Keys].
func (l *Lease) Key() string {
	if l.isNone() {
		return ""
	}
	return l.key
}

// Keys returns the keys of the lock as they were written when it was acquired: those of a joint lock
// in the order of their LOCK_KEYs (see [Registry.ObtainAll]), else one.
func (l *Lease) Keys() []string {
	if l.isNone() {
		return nil
	}
	return l.hold.keys()
}

// Holder returns what stands in CLIENT_ID while the lease lasts: the client id of the
// repository, a dash and the number of this acquisition of the row. Callers of one
// process that hand the row over to each other have the same Holder.
func (l *Lease) Holder() string {
	if l.isNone() {
		return ""
	}
	return l.hold.term.holder
}

// Token returns the fencing token of the lease: a number that is higher than that of
// every earlier lease of the same key, in whichever process, also after crashes and
// restarts of the database. Entering the lock again gives the same token. It is 0 if the
// repository draws none: see [RepositoryOptions].
//
// A storage outside of the database that remembers the highest token it has seen, and
// refuses lower ones, is safe from a holder that has lost its lease and does not know it
// yet. Inside the database [Lease.Guard] is simpler.
func (l *Lease) Token() int64 {
	if l.isNone() {
		return 0
	}
	return l.hold.term.token
}

// Context returns the context to work under. It is made from the one that was given to
// Lock, and ends
//
//   - with that one,
//   - with cause [ErrLockLost] (see context.Cause) when the lease is lost, which is before
//     another holder can acquire the lock,
//   - with Unlock.
//
// It carries the lease: locking the same key with it enters the lock again.
func (l *Lease) Context() context.Context {
	if l.isNone() {
		return noLease
	}
	return &l.ctx
}

// Deadline returns when the lease ends unless it is renewed. It is a time of this
// process's monotonic clock. The row expires later, by the clock of the database: by a
// margin of a tenth of the time-to-live, at most 500 ms.
func (l *Lease) Deadline() time.Time {
	if l.isNone() {
		return time.Time{}
	}
	return l.hold.deadline()
}

// Renew makes the lease last for its whole time-to-live from now. It never shortens a
// lease: see [Lease.RenewFor]. ctx, or the Deadline if that is earlier, limits the call.
//
// Renew returns [ErrLockLost] if the lease is lost, and [ErrNotHeld] after Unlock. Any
// other error leaves the lease as it was: it lasts until its Deadline, and Renew may be
// called again.
func (l *Lease) Renew(ctx context.Context) error {
	if err := l.alive(); err != nil {
		return err
	}
	return l.hold.renew(ctx, l.hold.ttl)
}

// RenewFor is Renew with another time-to-live: it makes the lease last for ttl from now,
// once. It is for a step that takes longer than the others. The errors are those of Renew.
//
//   - No renewal shortens a lease. If the lease lasts for longer than ttl already,
//     RenewFor changes nothing. Neither Renew, nor AutoRenew, nor entering the lock
//     again takes back what RenewFor gave.
//   - The time-to-live of the lease stays what it was. Later renewals use that one, also
//     those by AutoRenew.
//   - [RegistryOptions.MaxHold] does not limit RenewFor.
//   - If the holder crashes, the lock stays taken until ttl has passed. After an
//     [ErrDatabase] it may stay so although the lease ends earlier.
//   - A row that was renewed for longer than its time-to-live is not handed over
//     (see [RegistryOptions.HandOff]), it is released.
//
// A ttl below [MinTTL] gives an [ErrInvalid]. So does one that differs from the
// registry's in the four-column layout, as with [JdbcLock.WithTTL].
func (l *Lease) RenewFor(ctx context.Context, ttl time.Duration) error {
	if err := l.alive(); err != nil {
		return err
	}
	if err := l.hold.config.checkTTL(l.Key(), ttl); err != nil {
		return err
	}
	return l.hold.renew(ctx, ttl)
}

// Unlock gives the lease back. If the lock was entered several times, the last Unlock
// releases it. A lock with a minimum hold stays taken until that has passed: see
// [JdbcLock.WithMinHold]. Only the first call of Unlock does anything. Later ones return
// what the first returned, so Unlock may be deferred and also called early.
//
// Unlock does its work also when ctx has ended. It returns at the latest just after the
// lease would have ended. In every case the lock is then free for other callers in this
// process, unless its minimum hold keeps it. The errors are
//
//   - [ErrLockLost] if the lease was lost before. Work that was done under it may have
//     overlapped with another holder's.
//   - [ErrDatabase] if the row could not be released. It stays until the next acquisition
//     of the key in this process, or until its time-to-live ends. A row that was to be kept
//     for a minimum hold stays until its time-to-live ends.
//   - [ErrPinned] if a transaction that Guard was called in is still open. The row stays
//     as after an ErrDatabase. (On SQLite, where such a transaction locks the whole file,
//     the error is an ErrDatabase. So it is, after 5 s, on Oracle's MySQL over a pool of one's own whose
//     sessions have the server's innodb_lock_wait_timeout, 50 s; set it to 1 in the DSN.)
//
// On PostgreSQL a release does not wait for the disk. If the server crashes within a
// second or so it may forget the release. Then, too, the row stays until its time-to-live
// ends.
func (l *Lease) Unlock(ctx context.Context) error {
	if l.isNone() {
		return errNoLease()
	}
	l.unlock.Do(func() {
		l.unlocked.Store(true)
		l.releasing = newReleaseContext(ctx, l.hold)
		l.result = l.hold.unlock(&l.releasing) //nolint:contextcheck // it is made from ctx
		l.hold.remove(l)
		l.cancel(nil)
	})
	return l.result
}

// A leaseContext is the context of a lease, which it carries. It reads the clock when
// it is asked. A holder that was stopped past the end of its lease thereby finds its
// context done, whichever runs first: the holder or the timer.
type leaseContext struct {
	context.Context

	lease *Lease
}

func (c *leaseContext) Done() <-chan struct{} {
	c.check()
	return c.Context.Done()
}

func (c *leaseContext) Err() error {
	c.check()
	return c.Context.Err()
}

// check ends the context if the lease is lost. Another goroutine may have found that out, and
// may not have come to end this context yet: after a pause of the process that can take long
// enough for another holder to be there.
func (c *leaseContext) check() {
	c.lease.hold.check()
	if cause := c.lease.hold.lostBy(); cause != nil {
		c.lease.end(cause)
	}
}

func (c *leaseContext) Value(key any) any {
	if of, ok := key.(leaseKey); ok && of.registry == c.lease.hold.config {
		return c
	}
	return c.Context.Value(key)
}

// A leaseKey is the key under which contexts carry the innermost lease of a registry.
type leaseKey struct{ registry *holdConfig }

// leasesIn returns the leases of some holds in the registry of c that ctx carries, the innermost
// first.
func leasesIn(ctx context.Context, c *holdConfig, some func(*hold) bool) (leases []*Lease) {
	key := leaseKey{c}
	found, _ := ctx.Value(key).(*leaseContext)
	for found != nil {
		if some(found.lease.hold) {
			leases = append(leases, found.lease)
		}
		found, _ = found.Context.Value(key).(*leaseContext)
	}
	return leases
}

// of selects the holds of a LOCK_KEY.
func of(lockKey string) func(*hold) bool {
	return func(h *hold) bool { return h.covers(lockKey) }
}

// carriedHold returns the hold of a LOCK_KEY in the registry of c that ctx carries, or nil.
func carriedHold(ctx context.Context, c *holdConfig, lockKey string) *hold {
	if leases := leasesIn(ctx, c, of(lockKey)); len(leases) > 0 {
		return leases[0].hold
	}
	return nil
}

// carriedLease returns the innermost lease of a LOCK_KEY that ctx carries and that was not
// unlocked. Its error is ErrNotHeld if there is none, or says why that lease is over.
func carriedLease(ctx context.Context, c *holdConfig, key, lockKey string) (*Lease, error) {
	for _, lease := range leasesIn(ctx, c, of(lockKey)) {
		switch err := lease.alive(); {
		case err == nil:
			return lease, nil
		case !errors.Is(err, ErrNotHeld):
			return nil, err
		}
	}
	return nil, fmt.Errorf("%w: %q is not locked by this context", ErrNotHeld, key)
}

// carriedFor returns the hold that a caller with ctx enters again, or nil: the one that has all keys
// that r asks for.
func carriedFor(ctx context.Context, c *holdConfig, r *request) (*hold, error) {
	if !r.isJoint() {
		return carriedHold(ctx, c, r.lockKey), nil
	}
	var carried *hold
	for i, one := range r.joint {
		var h *hold
		switch lease, err := carriedLease(ctx, c, one.key, one.lockKey); {
		case err == nil:
			h = lease.hold
		case !errors.Is(err, ErrNotHeld):
			return nil, err
		}
		if i > 0 && h != carried {
			return nil, invalid("the context holds some of the keys %s, and not all by one lease: it would wait for itself", r.key)
		}
		carried = h
	}
	return carried, nil
}
