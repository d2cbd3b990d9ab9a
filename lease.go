package sqllock

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"
)

// A Lease is a lock that is held, for a time. It is given back with Unlock, ends
// by itself at its Deadline, and then, or when its row is found taken, is lost:
// its context ends, and every method returns [ErrLockLost].
//
// A nil Lease, which comes with an error of Lock, holds nothing: Unlock, UnlockAfter,
// Renew, RenewFor and Guard return [ErrNotHeld], so that a deferred Unlock does no harm
// before the error is looked at. Its Key and Holder are "", its Token is 0, which is
// lower than any other, its Deadline is the zero time, and its Context has ended with
// cause ErrNotHeld.
//
// All methods are safe for concurrent use.
type Lease struct {
	hold   *hold
	key    string // as the caller wrote it
	ctx    leaseContext
	cancel context.CancelCauseFunc

	unlock   sync.Once
	unlocked atomic.Bool // the first Unlock or UnlockAfter has begun
	result   error       // of that
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

// Key returns the key as the caller wrote it.
func (l *Lease) Key() string {
	if l.isNone() {
		return ""
	}
	return l.key
}

// Holder returns what stands in CLIENT_ID while the lease lasts: the client id of
// the repository, a dash and the number of this acquisition of the row, which callers
// of one process may hand on to each other.
func (l *Lease) Holder() string {
	if l.isNone() {
		return ""
	}
	return l.hold.holder
}

// Token returns the fencing token of the lease: a number that is higher than that of
// every earlier lease of the same key, in whichever process, also after crashes and
// restarts of the database. A storage outside of the database that remembers the
// highest token it has seen, and refuses lower ones, is safe from a holder that has
// lost its lease and does not know it yet; inside of the database [Lease.Guard] is
// simpler. Entering the lock again gives the same token. It is 0 if the repository
// draws none: see [RepositoryOptions].
func (l *Lease) Token() int64 {
	if l.isNone() {
		return 0
	}
	return l.hold.token
}

// Context returns the context to work under. It is made from the one that was
// given to Lock and ends with that; with cause [ErrLockLost] (see context.Cause)
// when the lease is lost, which is before anyone else can acquire the lock; and
// with Unlock. It carries the lease: locking the same key with it enters the lock
// again.
func (l *Lease) Context() context.Context {
	if l.isNone() {
		return noLease
	}
	return &l.ctx
}

// Deadline returns when the lease ends unless it is renewed. It is a time of this
// process's monotonic clock, a margin (a tenth of the time-to-live, at most
// 500 ms) earlier than the row expires by the database's.
func (l *Lease) Deadline() time.Time {
	if l.isNone() {
		return time.Time{}
	}
	return l.hold.deadline()
}

// Renew makes the lease last for its whole time-to-live from now. It returns
// [ErrLockLost] if the lease is lost, and [ErrNotHeld] after Unlock. Any other
// error leaves the lease as it was: it still lasts until its Deadline, and Renew
// may be tried again. ctx, or the Deadline if that is earlier, bounds the call.
//
// A renewal never shortens a lease: see [Lease.RenewFor].
func (l *Lease) Renew(ctx context.Context) error {
	if err := l.alive(); err != nil {
		return err
	}
	return l.hold.renew(ctx, l.hold.ttl)
}

// RenewFor is Renew with another time-to-live: it makes the lease last for ttl from
// now, once. It is for a step that takes longer than the others. The errors are those
// of Renew.
//
//   - No renewal shortens a lease. If the lease lasts for longer than ttl already,
//     RenewFor changes nothing. Neither Renew, nor AutoRenew, nor entering the lock
//     again takes back what RenewFor gave.
//   - The time-to-live of the lease stays what it was: later renewals, by AutoRenew
//     too, use that one.
//   - [RegistryOptions.MaxHold] does not bound RenewFor.
//   - If the holder crashes, the lock stays taken until ttl has passed. After an
//     [ErrDatabase] it may stay so although the lease ends earlier.
//   - A row that was renewed for longer than its time-to-live is not handed on
//     (see [RegistryOptions.HandOff]), it is released.
//
// A ttl below [MinTTL] gives an [ErrInvalid]. So does one that differs from the
// registry's in the four-column layout, as with [JdbcLock.WithTTL].
func (l *Lease) RenewFor(ctx context.Context, ttl time.Duration) error {
	if err := l.alive(); err != nil {
		return err
	}
	if err := l.hold.registry.checkTTL(l.Key(), ttl); err != nil {
		return err
	}
	return l.hold.renew(ctx, ttl)
}

// Unlock gives the lease back. If the lock was entered several times, the last
// Unlock releases it. Only the first call of Unlock or UnlockAfter does anything;
// later ones return what that returned, so it may be deferred and also called
// early.
//
// Unlock does its work also when ctx has ended, and returns at the latest just after the
// lease would have ended. It returns [ErrLockLost] if the lease was lost before:
// work done under it may have met another holder's. After an [ErrDatabase] the row
// stays until the next acquisition of the key in this process, or until its
// time-to-live ends; so it does after an [ErrPinned], which tells of a transaction that
// Guard was called in and that is still open. In every case the lock is free for other
// callers in this process.
//
// On PostgreSQL a release does not wait for the disk. If the server crashes within a
// second or so it may forget the release: then, too, the row stays until its
// time-to-live ends.
func (l *Lease) Unlock(ctx context.Context) error {
	return l.release(ctx, 0)
}

// UnlockAfter is Unlock, except that the lock stays taken until atLeast has
// passed since it was acquired: for a job that is to run at most once in that time
// over all instances, however short it is. It does not wait; the row is left to
// expire then, and keeps out the callers of this process too. atLeast may be longer
// than the time-to-live. If the lock was entered several times, the longest
// request counts. An atLeast that is not positive gives an [ErrInvalid], and the
// lease is unlocked.
func (l *Lease) UnlockAfter(ctx context.Context, atLeast time.Duration) error {
	if l.isNone() {
		return errNoLease()
	}
	if atLeast <= 0 {
		_ = l.release(ctx, 0) // the caller's mistake matters more
		return invalid("minimum hold %v of %q is not positive", atLeast, l.Key())
	}
	return l.release(ctx, atLeast)
}

func (l *Lease) release(ctx context.Context, atLeast time.Duration) error {
	if l.isNone() {
		return errNoLease()
	}
	l.unlock.Do(func() {
		l.unlocked.Store(true)
		l.result = l.hold.leave(ctx, atLeast)
		l.hold.forget(l)
		l.cancel(nil)
	})
	return l.result
}
