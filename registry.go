package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/lru"
	"github.com/sqllock/sqllock/observe"
)

// Defaults of [RegistryOptions]: Spring's.
const (
	DefaultIdleBetweenTries = 100 * time.Millisecond
	DefaultCacheCapacity    = 100_000
)

// RegistryOptions are the settings of a [Registry]. A zero field means its default.
type RegistryOptions struct {
	// TTL is the time-to-live of a lease: how long the lock stays taken after its holder
	// has crashed, and how long a holder may work without renewing. At least [MinTTL];
	// default 10 s. [JdbcLock.WithTTL] gives one lock another. Over a table of four
	// columns it must be that of [RepositoryOptions], which is its default there.
	TTL time.Duration

	// IdleBetweenTries is the longest pause between two polls of a lock that another
	// process holds. Default 100 ms. The pause begins at 25 ms, or a quarter of
	// IdleBetweenTries if that is longer, and grows with what polls cost. It is the longest
	// with a Waker, and after a poll that finds that others have acquired the lock again.
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
	// it, so that a holder that is stuck does not keep the lock for ever. Others acquire the lock up to
	// TTL later: the row lasts as long as its last renewal has given it. It does not limit
	// [Lease.Renew] and [Lease.RenewFor]. At least TTL; 0, the default, means no limit.
	MaxHold time.Duration

	// Observers are told what happens in the registry, beside those of [RepositoryOptions].
	// Nil ones, and those that the repository has too, are left out.
	Observers []*observe.Observer

	// HandOff, if true, has Unlock hand the row over to the next caller in this process
	// that waits for the same lock, in the order of arrival and without a statement. Each
	// has a lease and a fencing token of its own. After ten times IdleBetweenTries the row
	// is released and this process steps back, so that other processes get their turn. Many
	// waiters in one process are served much faster then, while other processes, such as
	// Java services, have one turn for each of its long ones.
	HandOff bool

	// WaitThroughOutages, if true, has calls that wait for a lock go on waiting while the
	// database fails, as it does for some seconds when another node takes over. They try
	// again after a pause, which grows from IdleBetweenTries to a second, until their
	// context or limit ends. The error is then an [ErrDatabase] that says for how long the
	// database has failed, and the context's own; it is no [ErrNotAcquired]. An [ErrSchema]
	// still ends the wait at once, and [JdbcLock.TryLock] still tries once.
	WaitThroughOutages bool

	// CacheCapacity is how many lock objects are kept at most. There can be more only if
	// they are held or waited for, after SetCacheCapacity. Default 100 000.
	CacheCapacity int

	// OnClose, if set, is called once, when [Registry.Close] has released what it could, and
	// its context has not ended before: to close a pool that serves this registry alone. It
	// must not call Close. Close returns its error, too.
	OnClose func() error
}

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
	onClose    func() error
	observers  observers
	releasing  chan struct{} // has one value while a call of Close releases
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
		return nil, invalid("TTL %v: without the column EXPIRED_AFTER it must be that of RepositoryOptions, %v (`sqllock migrate up --layout spring7` adds it, if no Spring before 7 uses the table)", o.TTL, fixedTTL)
	}
	onClose := func() error { return nil }
	if o.OnClose != nil {
		onClose = sync.OnceValue(o.OnClose)
	}
	all := repository.observers.with(o.Observers)
	return &Registry{
		onClose:    onClose,
		releasing:  make(chan struct{}, 1),
		repository: repository,
		observers:  all,
		locks:      o.locks(repository.table, fixedTTL, all),
		defaults:   request{ttl: o.TTL, autoRenew: o.AutoRenew},
	}, nil
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

// locks returns the locks of a registry with these options.
func (o *RegistryOptions) locks(t *locktable.Table, fixedTTL time.Duration, all observers) *locks {
	s := &locks{
		table:   t,
		idle:    o.IdleBetweenTries,
		waker:   o.Waker,
		entries: lru.New[string, entry](o.CacheCapacity),
		waiting: make(map[*hold]context.CancelCauseFunc),
		holds:   make(map[*hold]struct{}),
	}
	s.waitThroughOutages, s.observers = o.WaitThroughOutages, all.ofLocks()
	if len(s.observers) > 0 {
		t.KeepValues()
	}
	s.closing, s.close = context.WithCancelCause(context.Background())
	s.config = holdConfig{table: t, onEnd: s.removeHold, fixedTTL: fixedTTL, handOff: o.HandOff, idle: o.IdleBetweenTries}
	s.renewal = renewal{
		background: background{closing: s.closing}, table: t, batch: locktable.MaxRenewals,
		maxHold: o.MaxHold, observers: all.ofRenewals(), renewers: make(map[time.Duration]*renewer),
	}
	s.config.renewOverdue = s.renewal.renewOverdue
	return s
}

// Repository returns the repository of the registry: for [Repository.List] and the like.
func (r *Registry) Repository() *Repository { return r.repository }

// IdleBetweenTries returns the setting of [RegistryOptions]: for packages that wait for locks in
// ways of their own, as package semaphore does.
func (r *Registry) IdleBetweenTries() time.Duration { return r.locks.idle }

// Observers returns the observers of the registry, and of its repository: for packages that
// report events of their own, as package leader does.
func (r *Registry) Observers() []*observe.Observer { return slices.Clone(r.observers) }

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

// ExecuteLockedTx runs fn in a transaction of db that can commit only under the lock of
// key. It is Obtain and [JdbcLock.ExecuteLockedTx]. opts may be nil.
func (r *Registry) ExecuteLockedTx(ctx context.Context, key string, db *sql.DB, opts *sql.TxOptions, fn func(context.Context, *sql.Tx) error) error {
	lock, err := r.Obtain(key)
	if err != nil {
		return err
	}
	return lock.ExecuteLockedTx(ctx, db, opts, fn)
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

// LeasesFrom returns the leases of this registry that ctx carries (see [Lease.Context]) and that
// were not unlocked, the innermost first. Some may be lost. It sends nothing to the database.
func (r *Registry) LeasesFrom(ctx context.Context) []*Lease {
	return slices.DeleteFunc(leasesIn(ctx, &r.locks.config, func(*hold) bool { return true }), func(l *Lease) bool {
		return errors.Is(l.alive(), ErrNotHeld)
	})
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

// Held returns the leases that are held now, in no particular order. One of a joint lock appears with
// each of its keys.
func (r *Registry) Held() []Held {
	var held []Held
	for _, h := range r.locks.allHolds() {
		if h.isOver() {
			continue // it has just ended, or was handed over
		}
		t := h.currentTerm()
		for i := range h.count() {
			held = append(held, Held{
				Key: h.keyAt(i).key, Holder: t.holder, Token: t.token, Deadline: t.end, Waiting: h.entryAt(i).mutex.Waiters(),
			})
		}
	}
	return held
}

// Waiting returns how many callers of this registry wait for which keys, by key. Callers that
// wait behind a lease of this registry are counted, too.
func (r *Registry) Waiting() map[string]int { return r.locks.waitersByKey() }

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
// row is gone, another process can acquire the lock. The row of a lock with a minimum hold stays for the
// rest of it: see [JdbcLock.WithMinHold]. Afterwards every method that needs a
// lock returns ErrClosed, and Unlock too. The database stays open, unless
// [RegistryOptions.OnClose] closes it, as that of pgxlock.Open and the like does.
//
// Close also waits for acquisitions that are under way, even if their callers have
// returned, and deletes what they acquire. So a process that ends after Close leaves no other row
// behind, unless the error says so. Such a row stays until its time-to-live ends, and so does
// the row of a lease that was lost before.
//
// ctx limits all of it. If the database does not answer, Close returns after about 10 s, or
// the time-to-live if that is longer, also if ctx lasts. One call of Close releases at a time, and
// others wait for it. Close may be called again, and then
// tries to release what is left. If ctx ends before all is released, OnClose is left to
// such a call. So a deferred Close takes context.WithoutCancel(ctx).
func (r *Registry) Close(ctx context.Context) error {
	err := r.releaseAll(ctx)
	if err != nil && bounded.Ended(ctx) != nil {
		return err // another call may release what is left
	}
	return errors.Join(err, r.closeOnce(ctx))
}

// releaseAll releases all leases. One call at a time does that: what one leaves, because its context
// ends, the next one finds.
func (r *Registry) releaseAll(ctx context.Context) error {
	select {
	case r.releasing <- struct{}{}:
	default:
		select {
		case r.releasing <- struct{}{}:
		case <-ctx.Done():
			return fmt.Errorf("%w: close: another call of Close is releasing: %w", ErrDatabase, context.Cause(ctx))
		}
	}
	defer func() { <-r.releasing }()
	return r.locks.closeAll(ctx)
}

// closeOnce calls OnClose, or waits for the call of it.
func (r *Registry) closeOnce(ctx context.Context) error {
	_, closed := bounded.Do(ctx, bounded.Grace, func() (struct{}, error) { return struct{}{}, r.onClose() }, nil)
	if errors.Is(closed, bounded.ErrNoAnswer) {
		closed = fmt.Errorf("%w: close: %w", ErrDatabase, closed)
	}
	return closed
}
