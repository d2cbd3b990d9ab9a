package sqllock

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"
)

// Defaults of [RegistryOptions]: Spring's.
const (
	DefaultTTL              = 10 * time.Second
	DefaultIdleBetweenTries = 100 * time.Millisecond
	DefaultCacheCapacity    = 100_000
)

// RegistryOptions are the settings of a [Registry]. A zero field means its
// default.
type RegistryOptions struct {
	// TTL is the time-to-live of a lease: how long after a crash of its holder
	// the lock stays taken, and how long a holder may work without renewing. At
	// least [MinTTL]; default 10 s. [JdbcLock.WithTTL] gives one lock another.
	TTL time.Duration

	// IdleBetweenTries is the longest pause between two looks at a lock that
	// somebody else holds. Default 100 ms.
	IdleBetweenTries time.Duration

	// Waker, if set, wakes those who wait for a lock when it is released: package
	// notify has one for PostgreSQL. They look every IdleBetweenTries all the
	// same, for not everything that ends a lock can be told.
	Waker Waker

	// AutoRenew says that leases are renewed by themselves, each third of their
	// time-to-live, until they are unlocked: a holder that works longer than TTL
	// keeps its lock, and one that crashed, or is cut off from the database, loses
	// it after TTL as before. All leases of one time-to-live are renewed by one
	// statement. A goroutine does that for as long as there are any.
	// [JdbcLock.WithAutoRenew] chooses for one lock.
	AutoRenew bool

	// MaxHold is how long after its acquisition a lease ends although it could be
	// renewed by AutoRenew, so that a holder that is stuck does not keep the lock
	// for ever. [Lease.Renew] and [Lease.RenewFor] are not bound by it. At least TTL; 0,
	// the default, means no limit.
	MaxHold time.Duration

	// OnRenewal, if set, is told how each renewal by AutoRenew went: of how many
	// leases, and what the trouble was, or nil. One failure loses nothing: it is
	// tried again, and [Lease.Context] tells when a lease is lost. The next renewal
	// waits until it returns. It may call Close, which therefore does not wait for it.
	OnRenewal func(leases int, err error)

	// HandOff says that Unlock hands the row on to the next caller in this process who
	// waits for the same lock, without the database, in the order of arrival. Each has a
	// lease and a fencing token of its own. After ten times IdleBetweenTries the row is
	// released and this process steps back, so that others get their turn: a crowd in
	// one process is served much faster then, while others, such as Java services, have
	// one turn for each of its long ones.
	HandOff bool

	// CacheCapacity is how many lock objects are kept at most, not counting a
	// surplus of held ones after SetCacheCapacity. Default 100 000.
	CacheCapacity int
}

// A Registry hands out locks by key. It is Spring's JdbcLockRegistry: one per
// application (or per time-to-live) is the rule.
//
// Within a registry, callers of one key queue in the order of arrival, and only
// the first of them talks to the database. Two registries of one process exclude
// each other as two processes do.
//
// With AutoRenew there is a goroutine while there are leases; Close ends it. Other
// goroutines last as long as the statement that they send. Timers end with the leases
// they belong to. All methods are safe for concurrent use.
type Registry struct {
	repository *Repository
	ttl        time.Duration
	idle       time.Duration
	waker      Waker
	autoRenew  bool
	maxHold    time.Duration
	onRenewal  func(int, error)
	handOff    bool

	closing context.Context // done, with cause ErrClosed, once Close is called
	close   context.CancelCauseFunc

	mu    sync.Mutex
	cache cache
	// those who wait for a lock, with what ends their wait, and those who hold one
	waiting map[*hold]context.CancelCauseFunc
	holds   map[*hold]struct{}
	// calls that were admitted and have not returned
	entering sync.WaitGroup

	renewalPart int                          // how many leases one statement renews at most
	heartbeats  map[time.Duration]*heartbeat // by time-to-live, guarded by mu
	beating     sync.WaitGroup
}

// NewRegistry returns a registry over repository. opts may be nil. Bad options
// give an [ErrInvalid]. Nothing is sent to the database.
func NewRegistry(repository *Repository, opts *RegistryOptions) (*Registry, error) {
	var o RegistryOptions
	if opts != nil {
		o = *opts
	}
	if err := o.complete(); err != nil {
		return nil, err
	}
	if repository == nil {
		return nil, invalid("a registry needs a repository")
	}
	r := &Registry{
		repository: repository,
		ttl:        o.TTL,
		idle:       o.IdleBetweenTries,
		waker:      o.Waker,
		autoRenew:  o.AutoRenew,
		maxHold:    o.MaxHold,
		onRenewal:  o.OnRenewal,
		handOff:    o.HandOff,
		cache:      cache{capacity: o.CacheCapacity, began: time.Now(), entries: make(map[string]*entry)},
		waiting:    make(map[*hold]context.CancelCauseFunc),
		holds:      make(map[*hold]struct{}),
		heartbeats: make(map[time.Duration]*heartbeat),

		renewalPart: maxRenewal,
	}
	r.closing, r.close = context.WithCancelCause(context.Background())
	return r, nil
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

// Obtain returns the lock of key. While the lock is cached, it is the same
// object each time. Obtain sends nothing to the database; a lock need not be
// given back.
//
// Keys that the [KeyMapper] maps to one LOCK_KEY are one lock, as two spellings of a
// UUID are: they exclude each other, and one enters what the other holds. Each has a
// handle that shows the key as it was written; of these the one that was asked for first
// is the cached object.
//
// A bad key gives an [ErrInvalid]. If the cache is full of locks in use, the
// error is an [ErrCapacity]. A lock in use is never evicted; the handle of one
// that was goes on working.
func (r *Registry) Obtain(key string) (*JdbcLock, error) {
	lockKey, err := r.repository.LockKey(key)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.entryLocked(key, lockKey)
	if err != nil {
		return nil, err
	}
	if e.lock.key != key {
		lock := r.newLock(key, lockKey)
		return &lock, nil
	}
	return &e.lock, nil
}

// newLock returns a handle with the settings of the registry.
func (r *Registry) newLock(key, lockKey string) JdbcLock {
	return JdbcLock{registry: r, key: key, lockKey: lockKey, ttl: r.ttl, autoRenew: r.autoRenew}
}

// ExecuteLocked runs fn while it holds the lock of key, waiting for it as long as
// ctx lasts. fn's context ends with cause [ErrLockLost] if the lease is lost, and
// carries the lease, so that fn may lock the key again, and reach the lease itself with
// [Registry.LeaseFrom]. The lock is released when
// fn returns or panics; fn's error and that of the release are joined.
func (r *Registry) ExecuteLocked(ctx context.Context, key string, fn func(context.Context) error) error {
	lock, err := r.Obtain(key)
	if err != nil {
		return err
	}
	lease, err := lock.Lock(ctx)
	return execute(ctx, lease, err, fn)
}

// ExecuteLockedFor is ExecuteLocked with a limit to the wait for the lock, after
// which it returns [ErrNotAcquired] without having run fn. 0 means a single try.
func (r *Registry) ExecuteLockedFor(ctx context.Context, key string, wait time.Duration, fn func(context.Context) error) error {
	lock, err := r.Obtain(key)
	if err != nil {
		return err
	}
	lease, err := lock.TryLockFor(ctx, wait)
	return execute(ctx, lease, err, fn)
}

func execute(ctx context.Context, lease *Lease, err error, fn func(context.Context) error) (result error) {
	if err != nil {
		return err
	}
	defer func() { result = errors.Join(result, lease.Unlock(ctx)) }()
	return fn(lease.Context()) //nolint:contextcheck // it is made from ctx
}

// RenewLock makes the lease of key that ctx carries (see [Lease.Context]) last
// for its whole time-to-live from now. It returns [ErrNotHeld] if ctx carries
// none, as Spring does for a thread that is not the owner, and [ErrLockLost] if
// the lease is lost.
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

// ExpireUnusedOlderThan forgets the locks that nobody holds or waits for and that
// were last used longer than age ago, and returns how many there were. It frees
// memory and does not touch the database: see [Registry.DeleteExpired] for that.
// Call it from time to time where keys are many; package cleanup does. A negative
// age gives an [ErrInvalid].
func (r *Registry) ExpireUnusedOlderThan(age time.Duration) (int, error) {
	if age < 0 {
		return 0, invalid("age %v is negative", age)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.cache.evictUnusedSince(time.Now().Add(-age)), nil
}

// DeleteExpired removes the expired rows of the region, whoever left them, and
// returns how many there were. A contender takes over an expired row by itself;
// this is for keys that nobody asks for again.
func (r *Registry) DeleteExpired(ctx context.Context) (int64, error) {
	if r.closing.Err() != nil {
		return 0, ErrClosed
	}
	return r.repository.DeleteExpired(ctx, r.ttl)
}

// SetCacheCapacity changes how many lock objects are kept. If there are more,
// unused ones are evicted at once, the longest unused first, and others when they
// fall out of use. A capacity below 1 gives an [ErrInvalid].
func (r *Registry) SetCacheCapacity(capacity int) error {
	if capacity < 1 {
		return invalid("CacheCapacity %d: it must be at least 1", capacity)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.cache.capacity = capacity
	r.cache.evictTo(capacity)
	return nil
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
	for _, h := range r.snapshot() {
		if h.isOver() {
			continue // it has just been handed on
		}
		held = append(held, Held{
			Key: h.key(), Holder: h.holder, Token: h.token, Deadline: h.deadline(), Waiting: h.entry.mutex.Waiters(),
		})
	}
	return held
}

func (r *Registry) snapshot() []*hold {
	r.mu.Lock()
	defer r.mu.Unlock()
	holds := make([]*hold, 0, len(r.holds))
	for h := range r.holds {
		holds = append(holds, h)
	}
	return holds
}

// admit gives h, which is about to wait for its lock, the entry of its key, which
// stays cached meanwhile. giveUp is called if the registry is closed before h is
// enlisted or sent away. The caller says entering.Done when nothing is left of the call.
func (r *Registry) admit(h *hold, giveUp context.CancelCauseFunc) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.entryLocked(h.name, h.lockKey)
	if err != nil {
		return err
	}
	r.cache.pin(e)
	h.entry = e
	r.waiting[h] = giveUp
	r.entering.Add(1)
	return nil
}

// sendAway takes back what admit did, for a hold that did not get the lock.
func (r *Registry) sendAway(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, h)
	r.cache.unpin(h.entry)
}

// entryLocked returns the entry of a LOCK_KEY, which key is mapped to.
func (r *Registry) entryLocked(key, lockKey string) (*entry, error) {
	if r.closing.Err() != nil {
		return nil, fmt.Errorf("%w: %q", ErrClosed, key)
	}
	if e := r.cache.get(lockKey); e != nil {
		return e, nil
	}
	e := &entry{lock: r.newLock(key, lockKey)}
	if !r.cache.add(e) {
		return nil, fmt.Errorf("%w: no room for %q beside %d locks in use", ErrCapacity, key, r.cache.capacity)
	}
	return e, nil
}

// enlist makes h one of the holds that Close ends. It returns false if the
// registry is closed.
func (r *Registry) enlist(h *hold) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.waiting, h)
	if r.closing.Err() != nil {
		return false
	}
	r.holds[h] = struct{}{}
	r.watchOverLocked(h)
	return true
}

// dismiss takes h from the holds, and its pin from the entry.
func (r *Registry) dismiss(h *hold) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.holds, h)
	r.cache.unpin(h.entry)
}
