package sqllock

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/engine"
)

// A Lease is a lock that is held for a time. Unlock releases it. It ends by itself at its
// Deadline. A lease that has ended before Unlock, or whose row was removed or taken, is
// lost: its context ends, and every method returns [ErrLockLost].
//
// A nil Lease, which comes with an error of Lock, holds nothing: Unlock, Renew, RenewFor
// and Guard return [ErrNotHeld], so that a deferred Unlock does no harm before the error
// is checked. Its Key and Holder are "", its Token is 0, which is lower than any other,
// its Deadline is the zero time, and its Context has ended with cause ErrNotHeld.
//
// All methods are safe for concurrent use.
type Lease struct{ use engine.Use }

// leaseOf returns the lease of a use.
func leaseOf(u *engine.Use) *Lease { return u.Face().(*Lease) }

// held returns what l is a face of: nil for a nil lease.
func (l *Lease) held() *engine.Use {
	if l == nil {
		return nil
	}
	return &l.use
}

// Key returns the key as the caller wrote it. That of a joint lock names several of its keys, for
// messages: see [Lease.Keys].
func (l *Lease) Key() string { return l.held().Key() }

// Keys returns the keys of the lock as they were written when it was acquired: those of a joint lock
// in the order of their LOCK_KEYs (see [Registry.ObtainAll]), else one.
func (l *Lease) Keys() []string { return l.held().Keys() }

// Holder returns the CLIENT_ID of the row while the lease lasts: the client id of the
// repository, a dash and the number of this acquisition of the row. Callers of one process
// that hand the row over to each other have the same Holder.
func (l *Lease) Holder() string {
	holder, _, _ := l.held().Term()
	return holder
}

// Token returns the fencing token of the lease: a number that is higher than that of
// every earlier lease of the same key, in whichever process, also after crashes and
// restarts of the database. Entering the lock again gives the same token. It is 0 if the
// repository draws none: see [RepositoryOptions].
//
// A storage outside of the database that remembers the highest token it has seen, and
// refuses lower ones, is safe from a holder that has lost its lease and has not noticed it
// yet. Inside the database [Lease.Guard] is simpler.
func (l *Lease) Token() int64 {
	_, token, _ := l.held().Term()
	return token
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
func (l *Lease) Context() context.Context { return l.held().Context() }

// Deadline returns when the lease ends unless it is renewed. It is a time of this
// process's monotonic clock. The row expires later, by the clock of the database: by a
// margin of a tenth of the time-to-live, at most 500 ms.
func (l *Lease) Deadline() time.Time {
	_, _, end := l.held().Term()
	return end
}

// Renew makes the lease last for its whole time-to-live from now. It never shortens a
// lease: see [Lease.RenewFor]. ctx, or the Deadline if that is earlier, limits the call.
//
// Renew returns [ErrLockLost] if the lease is lost, and [ErrNotHeld] after Unlock. Any
// other error leaves the lease as it was: it lasts until its Deadline, and Renew may be
// called again.
func (l *Lease) Renew(ctx context.Context) error { return l.held().Renew(ctx) }

// RenewFor is Renew with another time-to-live: it makes the lease last for ttl from now,
// once. It is for a step that takes longer than the others. The errors are those of Renew.
//
//   - No renewal shortens a lease. If the lease lasts for longer than ttl already, RenewFor
//     changes nothing. Neither Renew, nor the automatic renewal, nor entering the lock again shortens
//     it later.
//   - The time-to-live of the lease stays what it was. Later renewals use that one, also
//     the automatic ones.
//   - [RegistryOptions.MaxHold] does not limit RenewFor.
//   - If the holder crashes, the lock stays taken until ttl has passed. After an
//     [ErrDatabase] it may stay so although the lease ends earlier.
//   - A row that was renewed for longer than its time-to-live is not handed over
//     (see [RegistryOptions.HandOff]), it is released.
//
// A ttl below [MinTTL] gives an [ErrInvalid]. So does one that differs from the
// registry's in the four-column layout, as with [JdbcLock.WithTTL].
func (l *Lease) RenewFor(ctx context.Context, ttl time.Duration) error {
	return l.held().RenewFor(ctx, ttl)
}

// Unlock ends the lease. If the lock was entered several times, the last Unlock releases
// it. A lock with a minimum hold stays taken until that has passed: see
// [JdbcLock.WithMinHold]. Only the first call of Unlock does anything. Later ones return
// what the first returned, so Unlock may be deferred and also called early.
//
// Unlock does its work also when ctx has ended. It returns at the latest just after the
// lease would have ended. In every case the lock is then free for other callers in this
// process, unless its minimum hold keeps it. The errors are
//
//   - [ErrLockLost] if the lease was lost before. Work that was done under it may have
//     overlapped with another holder's.
//   - [ErrDatabase] if the row could not be released. This process deletes it when the
//     database answers again, 15 s later at most, and before it acquires the key again; else
//     it stays until its time-to-live ends. A row that was to be kept
//     for a minimum hold stays until its time-to-live ends.
//   - [ErrPinned] if a transaction that Guard was called in is still open. The row stays as
//     after an ErrDatabase. (On SQLite, where such a transaction locks the whole file, the
//     error is an ErrDatabase. So it is, after 5 s, on Oracle's MySQL over a pool of your own
//     whose sessions have the server's innodb_lock_wait_timeout, 50 s; set it to 1 in the DSN.)
//
// On PostgreSQL a release does not wait for the disk. If the server crashes within a
// second or so it may forget the release. Then, too, the row stays until its time-to-live
// ends.
func (l *Lease) Unlock(ctx context.Context) error { return l.held().Unlock(ctx, time.Time{}) }
