// Package certmagiclock is the locking half of a storage for certmagic
// (github.com/caddyserver/certmagic), and so for Caddy: one instance obtains or renews a
// certificate and the others wait for it.
//
//	type storage struct {
//		certmagic.Storage // for certificates; it has a Lock and an Unlock, too
//		locks             *certmagiclock.Locker
//	}
//
//	func (s storage) Lock(ctx context.Context, name string) error { return s.locks.Lock(ctx, name) }
//
//	func (s storage) TryLock(ctx context.Context, name string) (bool, error) {
//		return s.locks.TryLock(ctx, name)
//	}
//
//	func (s storage) Unlock(ctx context.Context, name string) error { return s.locks.Unlock(ctx, name) }
//
//	func (s storage) RenewLockLease(ctx context.Context, name string, d time.Duration) error {
//		return s.locks.RenewLockLease(ctx, name, d)
//	}
//
// Write the methods out as here: if storage embedded both, each would have a Lock, and the compiler
// would refuse to choose. Without TryLock certmagic waits where it could skip.
//
// The package does not import certmagic: a [Locker] has the methods of its interfaces.
package certmagiclock

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/internal/named"
)

// A Locker is certmagic's Locker, TryLocker and LockLeaseRenewer over the locks of a registry. All
// methods are safe for concurrent use.
//
//   - Leases are renewed automatically, also with the registry's NoRenew: to obtain a
//     certificate may take days of retries. If an instance crashes, its locks are free after the
//     registry's time-to-live. Set no [sqllock.RegistryOptions].MaxHold: it ends these leases, too.
//   - certmagic does not learn at once that a lease is lost. Unlock returns [sqllock.ErrLockLost]
//     then. RenewLockLease, which certmagic calls before each try, acquires the lock again.
//   - certmagic.CleanUpOwnLocks releases locks while the work under them goes on. Call it only when
//     the process ends.
type Locker struct{ locks *named.Locks }

// New returns a locker whose keys are prefix and certmagic's name of the lock. It sends nothing to
// the database.
func New(registry *sqllock.Registry, prefix string) *Locker {
	return &Locker{locks: named.New(registry, prefix)}
}

// Lock acquires the lock of name and waits as long as ctx lasts. The errors are those of
// [sqllock.Registry.Lock].
func (l *Locker) Lock(ctx context.Context, name string) error { return l.locks.Lock(ctx, name) }

// TryLock acquires the lock of name if it is free, and reports whether it has. That another holder
// has it is no error. The errors are those of [sqllock.Registry.TryLock].
func (l *Locker) TryLock(ctx context.Context, name string) (bool, error) {
	err := l.locks.TryLock(ctx, name)
	if errors.Is(err, sqllock.ErrNotAcquired) && ctx.Err() == nil {
		return false, nil
	}
	return err == nil, err
}

// Unlock releases the lock of name, also when ctx has ended. The errors are those of
// [sqllock.Lease.Unlock]; [sqllock.ErrNotHeld] if this locker does not hold the lock.
func (l *Locker) Unlock(ctx context.Context, name string) error { return l.locks.Unlock(ctx, name) }

// RenewLockLease makes the lease of name last for the registry's time-to-live from now. If the lease
// is lost and the lock is free, it acquires the lock again. certmagic calls Lock once and then tries
// for up to 30 days: without that, it would fail at each further try, since it renews the lease first.
// When it has, it looks whether another instance has obtained the certificate meanwhile.
//
// The duration is not used: the lease is renewed for as long as this process lives, and after a
// crash the lock is free sooner. The errors are
//
//   - those of [sqllock.Lease.Renew],
//   - [sqllock.ErrLockLost], joined with the error of [sqllock.Registry.TryLock], if the lock could
//     not be acquired again: an [sqllock.ErrNotAcquired] if another holder has it,
//   - [sqllock.ErrNotHeld], if this locker has not acquired the lock.
func (l *Locker) RenewLockLease(ctx context.Context, name string, _ time.Duration) error {
	return l.locks.Renew(ctx, name)
}
