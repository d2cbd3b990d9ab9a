package sqllock

import "time"

// Defaults of [RegistryOptions]: Spring's.
const (
	DefaultIdleBetweenTries = 100 * time.Millisecond
	DefaultCacheCapacity    = 100_000
)

// RegistryOptions are the settings of a [Registry]. A zero field means its default.
type RegistryOptions struct {
	// TTL is the time-to-live of a lease: how long the lock stays taken after its holder
	// has crashed, and how long a holder may work without renewing. At least [MinTTL];
	// default 10 s. [JdbcLock.WithTTL] gives one lock another. Over the four-column
	// table it is that of [RepositoryOptions], by default and at all times.
	TTL time.Duration

	// IdleBetweenTries is the longest pause between two polls of a lock that another
	// process holds. Default 100 ms.
	IdleBetweenTries time.Duration

	// Waker, if set, wakes waiters when the lock is released: package notify has one for
	// PostgreSQL. Waiters still poll every IdleBetweenTries, because an expired lease
	// produces no notification.
	Waker Waker

	// AutoRenew, if true, renews leases automatically, each third of their time-to-live,
	// until they are unlocked. A holder that works longer than TTL keeps its lock. One that
	// crashed, or is cut off from the database, loses it after TTL as before. One statement
	// renews all leases of one time-to-live. A goroutine sends it for as long as there are
	// any. [JdbcLock.WithAutoRenew] chooses for one lock.
	AutoRenew bool

	// MaxHold is how long after its acquisition a lease ends although AutoRenew could renew
	// it, so that a holder that is stuck does not keep the lock for ever. It does not limit
	// [Lease.Renew] and [Lease.RenewFor]. At least TTL; 0, the default, means no limit.
	MaxHold time.Duration

	// OnRenewal, if set, is called after each renewal by AutoRenew, with the number of
	// leases and the error, or nil. After an error AutoRenew tries again; a lease is lost
	// only when its [Lease.Context] ends. The next renewal waits until OnRenewal returns. It
	// may call Close, which therefore does not wait for it.
	OnRenewal func(leases int, err error)

	// HandOff, if true, has Unlock hand the row over to the next caller in this process
	// that waits for the same lock, in the order of arrival and without a statement. Each
	// has a lease and a fencing token of its own. After ten times IdleBetweenTries the row
	// is released and this process steps back, so that other processes get their turn. Many
	// waiters in one process are served much faster then, while other processes, such as
	// Java services, have one turn for each of its long ones.
	HandOff bool

	// CacheCapacity is how many lock objects are kept at most. There can be more only if
	// they are held or waited for, after SetCacheCapacity. Default 100 000.
	CacheCapacity int
}

// complete checks the options and fills in the defaults.
func (o *RegistryOptions) complete() error {
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.IdleBetweenTries == 0 {
		o.IdleBetweenTries = DefaultIdleBetweenTries
	}
	if o.CacheCapacity == 0 {
		o.CacheCapacity = DefaultCacheCapacity
	}
	switch {
	case o.IdleBetweenTries < 0:
		return invalid("IdleBetweenTries %v is negative", o.IdleBetweenTries)
	case o.CacheCapacity < 0:
		return invalid("CacheCapacity %d is negative", o.CacheCapacity)
	case o.MaxHold != 0 && o.MaxHold < o.TTL:
		return invalid("MaxHold %v is shorter than TTL, %v", o.MaxHold, o.TTL)
	}
	return checkTTL(o.TTL)
}
