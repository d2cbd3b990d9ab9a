package sqllock

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"
)

// A Registry hands out locks by key. It is Spring's JdbcLockRegistry. An application
// usually has one, or one for each time-to-live.
//
// Within a registry, callers of one key queue in the order of arrival, and only the first
// of them talks to the database. Two registries of one process exclude each other as two
// processes do.
//
// With AutoRenew there is a goroutine while there are leases; Close ends it. Other
// goroutines last as long as the statement that they send. Timers end with the leases they
// belong to. All methods are safe for concurrent use.
type Registry struct {
	repository *Repository
	locks      *locks
	defaults   request // of a handle, without a key
}

// NewRegistry returns a registry over repository. opts may be nil. Bad options give an
// [ErrInvalid]. NewRegistry sends nothing to the database.
func NewRegistry(repository *Repository, opts *RegistryOptions) (*Registry, error) {
	var o RegistryOptions
	if opts != nil {
		o = *opts
	}
	if repository == nil {
		return nil, invalid("a registry needs a repository")
	}
	fixedTTL := repository.fixedTTL()
	if o.TTL == 0 {
		o.TTL = fixedTTL
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	if fixedTTL != 0 && o.TTL != fixedTTL {
		return nil, invalid("TTL %v: without the column EXPIRED_AFTER it must be that of RepositoryOptions, %v (run `sqllock migrate up`)", o.TTL, fixedTTL)
	}
	return &Registry{
		repository: repository,
		locks:      newLocks(repository.table, o, fixedTTL),
		defaults:   request{ttl: o.TTL, autoRenew: o.AutoRenew},
	}, nil
}

// Obtain returns the lock of key. While the lock is cached, it is the same object each
// time. Obtain sends nothing to the database; a lock need not be given back.
//
// Keys that the [KeyMapper] maps to one LOCK_KEY are one lock, as two spellings of a UUID
// are: they exclude each other, and a caller that holds one enters the other. Each spelling
// has a handle that shows the key as it was written. Only the one that was asked for first
// is the cached object.
//
// A bad key gives an [ErrInvalid]. If the cache is full of locks in use, the error is an
// [ErrCapacity]. A lock in use is never evicted. The handle of an evicted lock goes on
// working.
func (r *Registry) Obtain(key string) (*JdbcLock, error) {
	lockKey, err := r.repository.LockKey(key)
	if err != nil {
		return nil, err
	}
	r.locks.mu.Lock()
	defer r.locks.mu.Unlock()
	e, err := r.locks.entryLocked(key, lockKey)
	if err != nil {
		return nil, err
	}
	cached, _ := e.handle.(*JdbcLock)
	if cached != nil && cached.key == key {
		return cached, nil
	}
	lock := &JdbcLock{locks: r.locks, request: r.defaults}
	lock.key, lock.lockKey = key, lockKey
	if cached == nil {
		e.handle = lock
	}
	return lock, nil
}

// Lock acquires the lock of key, waiting for as long as ctx lasts. It is Obtain and
// [JdbcLock.Lock].
func (r *Registry) Lock(ctx context.Context, key string) (*Lease, error) {
	lock, err := r.Obtain(key)
	if err != nil {
		return nil, err
	}
	return lock.Lock(ctx)
}

// TryLock acquires the lock of key if it is free or expired, and returns [ErrNotAcquired]
// if it is held. It is Obtain and [JdbcLock.TryLock].
func (r *Registry) TryLock(ctx context.Context, key string) (*Lease, error) {
	lock, err := r.Obtain(key)
	if err != nil {
		return nil, err
	}
	return lock.TryLock(ctx)
}

// TryLockFor is Lock with a limit to the wait, after which it returns [ErrNotAcquired]. It
// is Obtain and [JdbcLock.TryLockFor].
func (r *Registry) TryLockFor(ctx context.Context, key string, wait time.Duration) (*Lease, error) {
	lock, err := r.Obtain(key)
	if err != nil {
		return nil, err
	}
	return lock.TryLockFor(ctx, wait)
}

// ExecuteLocked runs fn while it holds the lock of key, waiting for it as long as ctx
// lasts. It is Obtain and [JdbcLock.ExecuteLocked].
func (r *Registry) ExecuteLocked(ctx context.Context, key string, fn func(context.Context) error) error {
	lock, err := r.Obtain(key)
	if err != nil {
		return err
	}
	return lock.ExecuteLocked(ctx, fn)
}

// ExecuteLockedFor is ExecuteLocked with a limit to the wait for the lock. It is Obtain and
// [JdbcLock.ExecuteLockedFor].
func (r *Registry) ExecuteLockedFor(ctx context.Context, key string, wait time.Duration, fn func(context.Context) error) error {
	lock, err := r.Obtain(key)
	if err != nil {
		return err
	}
	return lock.ExecuteLockedFor(ctx, wait, fn)
}

// ExecuteLockedTx runs fn in a transaction of db that can commit only under the lock of
// key. It is Obtain and [JdbcLock.ExecuteLockedTx]. opts may be nil.
func (r *Registry) ExecuteLockedTx(ctx context.Context, key string, db *sqlx.DB, opts *sql.TxOptions, fn func(context.Context, *sqlx.Tx) error) error {
	lock, err := r.Obtain(key)
	if err != nil {
		return err
	}
	return lock.ExecuteLockedTx(ctx, db, opts, fn)
}

// ExecuteLockedTxFor is ExecuteLockedTx with a limit to the wait for the lock. It is Obtain
// and [JdbcLock.ExecuteLockedTxFor].
func (r *Registry) ExecuteLockedTxFor(ctx context.Context, key string, wait time.Duration, db *sqlx.DB, opts *sql.TxOptions, fn func(context.Context, *sqlx.Tx) error) error {
	lock, err := r.Obtain(key)
	if err != nil {
		return err
	}
	return lock.ExecuteLockedTxFor(ctx, wait, db, opts, fn)
}

// LeaseFrom returns the lease of key in this registry that ctx carries: the one whose
// [Lease.Context] ctx is, or is made from. It sends nothing to the database.
//
// Inside [Registry.ExecuteLocked] it gives fn its lease, for [Lease.Token], [Lease.Guard]
// or [Lease.RenewFor]. Anywhere else it asserts that the caller works under the lock.
//
// A ctx may carry leases of several keys and registries. Of several leases of one key
// LeaseFrom returns the innermost that was not unlocked. Whether ctx itself has ended makes
// no difference. The error is
//
//   - [ErrNotHeld] if ctx carries no lease of key, or only ones that were unlocked,
//   - [ErrLockLost] if the lease is lost,
//   - [ErrClosed] after Close,
//   - [ErrInvalid] for a bad key.
//
// The lease is the caller's own, not a further entry: Unlock gives it back for all that
// use it. fn may therefore unlock early. The release after fn then does nothing and returns
// the same result, see [Lease.Unlock]. In [Registry.ExecuteLockedTx] leave that to the
// registry: the transaction pins the row, so Unlock returns [ErrPinned] there, and ends the
// context, which rolls the transaction back.
func (r *Registry) LeaseFrom(ctx context.Context, key string) (*Lease, error) {
	lockKey, err := r.repository.LockKey(key)
	if err != nil {
		return nil, err
	}
	return carriedLease(ctx, &r.locks.config, key, lockKey)
}

// RenewLock makes the lease of key that ctx carries (see [Lease.Context]) last for its
// whole time-to-live from now. It returns [ErrNotHeld] if ctx carries none, as Spring does
// for a thread that is not the owner, and [ErrLockLost] if the lease is lost.
func (r *Registry) RenewLock(ctx context.Context, key string) error {
	lease, err := r.LeaseFrom(ctx, key)
	if err != nil {
		return err
	}
	return lease.Renew(ctx)
}

// RenewLockFor is RenewLock with another time-to-live: see [Lease.RenewFor].
func (r *Registry) RenewLockFor(ctx context.Context, key string, ttl time.Duration) error {
	lease, err := r.LeaseFrom(ctx, key)
	if err != nil {
		return err
	}
	return lease.RenewFor(ctx, ttl)
}

// Held describes a lease that this registry holds.
type Held struct {
	// Key is the key as the caller wrote it.
	Key string
	// Holder is the CLIENT_ID in the row.
	Holder string
	// Token is the fencing token of the lease.
	Token int64
	// Deadline is when the lease ends unless it is renewed.
	Deadline time.Time
	// Waiting is how many callers of this registry wait for the lock.
	Waiting int
}

// Held returns the leases that are held now, in no particular order.
func (r *Registry) Held() []Held {
	var held []Held
	for _, h := range r.locks.allHolds() {
		if h.isOver() {
			continue // it has just ended, or was handed over
		}
		t := h.currentTerm()
		held = append(held, Held{
			Key: h.key, Holder: t.holder, Token: t.token, Deadline: t.end, Waiting: h.entry.mutex.Waiters(),
		})
	}
	return held
}

// DeleteExpired removes the expired rows of the region, of all clients, and returns how
// many there were. An attempt to acquire takes over an expired row by itself. DeleteExpired
// is for keys that are not asked for again.
func (r *Registry) DeleteExpired(ctx context.Context) (int64, error) {
	if r.locks.closing.Err() != nil {
		return 0, ErrClosed
	}
	return r.repository.DeleteExpired(ctx)
}

// ExpireUnusedOlderThan forgets the locks that are neither held nor waited for and were
// last used longer than age ago, and returns how many there were. It frees memory and does
// not touch the database: see [Registry.DeleteExpired] for that. Call it from time to time
// where keys are many; package cleanup does. A negative age gives an [ErrInvalid].
func (r *Registry) ExpireUnusedOlderThan(age time.Duration) (int, error) {
	if age < 0 {
		return 0, invalid("age %v is negative", age)
	}
	r.locks.mu.Lock()
	defer r.locks.mu.Unlock()
	return r.locks.entries.EvictUnusedSince(time.Now().Add(-age)), nil
}

// SetCacheCapacity changes how many lock objects are kept. If there are more, unused ones
// are evicted at once, the longest unused first, and others when they fall out of use. A
// capacity below 1 gives an [ErrInvalid].
func (r *Registry) SetCacheCapacity(capacity int) error {
	if capacity < 1 {
		return invalid("CacheCapacity %d: it must be at least 1", capacity)
	}
	r.locks.mu.Lock()
	defer r.locks.mu.Unlock()
	r.locks.entries.SetCapacity(capacity)
	return nil
}

// Close ends all waiting with [ErrClosed], ends the contexts of all leases with that cause,
// and then releases their rows, together. Stop the work under the leases first: once its
// row is gone, another process can acquire the lock. Afterwards every method that needs a
// lock returns ErrClosed, and Unlock too. The database stays open.
//
// Close also waits for acquisitions that are under way, even if their callers have
// returned, and deletes what they acquire. So a process that ends after Close leaves no row
// behind, unless the error says so. Such a row stays until its time-to-live ends.
//
// ctx limits all of it. If the database does not answer, Close returns after about 10 s, or
// the time-to-live if that is longer, also if ctx lasts. Close may be called again, and then
// tries to release what is left.
func (r *Registry) Close(ctx context.Context) error { return r.locks.closeAll(ctx) }
