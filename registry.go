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
	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/report"
	"github.com/sqllock/sqllock/observe"
)

// DefaultTTL is the default time-to-live of a lease: Spring's.
const DefaultTTL = 10 * time.Second

// MinTTL is the shortest time-to-live. A shorter lease would be over before its holder
// starts to work.
const MinTTL = 10 * time.Millisecond

// MaxKeys is how many keys a joint lock has at most: see [Registry.ObtainAll].
const MaxKeys = 1000

// Defaults of [RegistryOptions]: Spring's.
const (
	DefaultIdleBetweenTries = 100 * time.Millisecond
	DefaultCacheCapacity    = 100_000
)

// DefaultReportWaitAfter is the default of [RegistryOptions.ReportWaitAfter].
const DefaultReportWaitAfter = 30 * time.Second

// RegistryOptions are the settings of a [Registry]. A zero field means its default.
type RegistryOptions struct {
	// TTL is the time-to-live of a lease: how long the lock stays taken after its holder
	// has crashed, and how long a holder may work without renewing. At least [MinTTL];
	// default 10 s. [JdbcLock.WithTTL] gives one lock another. Over a table of four
	// columns it must be that of [RepositoryOptions], which is its default there.
	TTL time.Duration

	// IdleBetweenTries is the longest pause between two polls of a lock that another process holds. Default 100 ms. The pause
	// begins at 25 ms, or a quarter of IdleBetweenTries if that is longer, and grows with what polls cost. With a Waker it is
	// IdleBetweenTries. With sqlitelock.Open, where a write to the file brings the next poll forward, it is five times
	// IdleBetweenTries while nothing is written, once such a poll has found a change. Where processes want a lock all the time, a caller polls the sooner the longer it has waited, and a process
	// whose callers have had the lock for 100 ms steps back for a moment, so that all are likely to get their turns: docs/waiting.md
	// has the rules.
	IdleBetweenTries time.Duration

	// Waker, if set, wakes waiters when the lock is released: package notify has one for
	// PostgreSQL. Waiters still poll every IdleBetweenTries, because an expired lease
	// produces no notification.
	Waker Waker

	// NoRenew, if true, lets a lease end after its time-to-live, as Spring's registry does. By default leases are renewed, each third
	// of their time-to-live, until they are unlocked. A holder that works longer than TTL keeps its lock. One that crashed, or is cut
	// off from the database, loses it after TTL all the same. One statement renews all leases of one time-to-live. A goroutine
	// sends it for as long as there are any. [JdbcLock.WithAutoRenew] chooses for one lock.
	NoRenew bool

	// MaxHold is how long after its acquisition a lease ends although it could be renewed, so that a holder that is stuck does not
	// keep the lock for ever. Others acquire the lock up to TTL later: the row lasts as long as its last renewal has given it. Entering the lock again
	// does not make it last longer either. MaxHold does not limit [Lease.Renew], [Lease.RenewFor] and
	// a longer [JdbcLock.WithTTL]. At least TTL; 0, the default, means no limit.
	MaxHold time.Duration

	// ReportWaitAfter is how long a caller waits for a lock until that is reported to Observer.Waiting,
	// or, if no observer has that function, logged to slog.Default() as a warning with the key (see DisableNames), the holder
	// and the time: once for a key, however many callers wait, and again when they have waited for twice as
	// long, four times as long and so on. Default 30 s; negative means never.
	ReportWaitAfter time.Duration

	// Observers are told what happens in the registry, beside those of [RepositoryOptions].
	// Nil ones, and those that the repository has too, are left out.
	Observers []*observe.Observer

	// Fair, if true, has callers acquire in the order of arrival between processes, too, as far as these are fair. The row alone
	// says who holds the lock: Java services, and registries that are not fair, acquire out of turn. [JdbcLock.WithFair] chooses
	// for one lock. It is for PostgreSQL, and for a single MySQL or MariaDB: otherwise, or with binlog_format=STATEMENT, NewRegistry
	// returns an [ErrInvalid]. A pooler of transactions is refused with an ErrInvalid by the first call that locks, or by Open of
	// pgxlock and pqlock. With [RepositoryOptions.Layout] only the pooler is noticed. A registry cannot have HandOff, too.
	//
	//   - Each process has one place in the queue of a key, in a session of its own: 16 at most, see [RepositoryOptions.Turns]. Without
	//     one, callers wait as for a lock that is not fair, and Observer.Fallback is called.
	//   - If the process whose turn it is crashes, the next one has it at once. If it is stopped or cut off, the server ends its
	//     session after 5 s. So it is for each such process that waits.
	//   - A caller that has waited for a minute goes to the end of the queue. With a Waker it is the one whose turn it is that is woken.
	//   - TryLock returns [ErrNotAcquired] also if another process waits.
	//   - A joint lock has its turn at one of its keys, the one that it waits for.
	//
	// docs/waiting.md has the rules.
	Fair bool

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

	// Application and Version are what this process calls itself in the table of names, INT_LOCK_NAME, beside its host and process
	// ID. Default: the name of the program, and the version of its main module if the build has one.
	//
	// A process writes itself there, and the keys as callers wrote them, for locks that are held or waited for for longer than a
	// second or two. So tools, [Row] and [HeldError] show names instead of hashes and CLIENT_IDs, on every host.
	//   - It writes in the background, 100 names at a time and once a second at most. Only if the row of a lock stays for a second
	//     or more, for its minimum hold, Unlock writes the name itself, and waits for that for 250 ms at most.
	//   - While callers have waited for longer than five seconds, it writes for which locks and how long, every five seconds at
	//     most, for all of them in one row: see [Repository.Waiters].
	//   - Where the table is missing, or the user has no rights on it, nothing is written, and no call fails. The process tries again
	//     after 15 minutes.
	//   - A key of more than 1000 characters is cut, and ends in "...": only its LOCK_KEY can stand for it then. Application and
	//     Version are cut so that all of them, and the host, have 1000 together.
	Application, Version string

	// DisableNames, if true, has the registry write neither keys nor this process to the table of
	// names. It is for keys that are secrets: every user who may read that table reads them there.
	//   - What the registry logs of its own accord, the report of a long wait, has LOCK_KEY instead of
	//     the key. The errors and events that the application gets have the key, and so have an observe.SlogObserver
	//     and the page.
	//   - With [PlainKeys] the key is the LOCK_KEY, and stands in the lock table itself.
	//   - A process that waits for such a key without DisableNames still writes it.
	//   - On SQLite it also spares the application's own deferred transactions an
	//     SQLITE_BUSY_SNAPSHOT by a write in the background.
	DisableNames bool

	// OnClose, if set, is called once, when [Registry.Close] has released what it could, and
	// its context has not ended before: to close a pool that serves this registry alone. It
	// must not call Close. Close returns its error, too.
	OnClose func() error
}

// A Waker wakes callers that wait for a lock when it is released, so that they need not
// wait until their next poll. Wake-ups are best effort: a waiter that misses one finds out
// at its next poll, after at most [RegistryOptions.IdleBetweenTries].
//
// Package notify has one for PostgreSQL. One Waker serves any number of registries. All
// methods must be safe for concurrent use.
type Waker interface {
	// Watch subscribes to a topic, which stands for the row of one lock: it is the payload that is
	// notified on dialect.Channel when the row is deleted, which is the name of the lock table in
	// lower case and without a schema, the region and LOCK_KEY, separated by tabs.
	//
	// After Watch has returned, wake gets a value when the lock is released. A value that was not received yet stands for all that would follow, and
	// one may come without a release. Watch must not block. wake is never closed.
	//
	// stop ends the subscription. It is called once.
	Watch(topic string) (wake <-chan struct{}, stop func())
}

// A Registry hands out locks by key. It is Spring's JdbcLockRegistry. An application
// usually has one, or one for each time-to-live.
//
// Within a registry, callers of one key queue in the order of arrival, and only the first
// of them talks to the database. Two registries of one process exclude each other as two
// processes do.
//
// A registry has up to three kinds of goroutines, which Close ends:
//
//   - one for each time-to-live of leases that are renewed, while there are such leases and for up to a third of it after that;
//   - one while rows may be left of callers that the database has not answered;
//   - one on PostgreSQL while the rows of busy keys stay after their release, and for up to half a minute after that.
//
// Other goroutines last as long as the statement that they send, or the report of a long wait. Timers end with the leases
// and waits they belong to. All methods are safe for concurrent use.
type Registry struct {
	repository *Repository
	locks      *engine.Locks
	idle       time.Duration // IdleBetweenTries
	onClose    func() error
	observers  []*observe.Observer
	waits      *report.Tracker
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
	if err := o.complete(repository.table.LeastTTL()); err != nil {
		return nil, err
	}
	if fixedTTL != 0 && o.TTL != fixedTTL {
		return nil, invalid("TTL %v: without the column EXPIRED_AFTER it must be that of RepositoryOptions, %v (`%s --layout spring7` adds it, if no Spring before 7 uses the table)",
			o.TTL, fixedTTL, repository.table.MigrateUp())
	}
	if o.Fair {
		if err := repository.table.Turns.Check(); err != nil {
			return nil, failure.Of(err, "")
		}
	}
	onClose := func() error { return nil }
	if o.OnClose != nil {
		onClose = sync.OnceValue(o.OnClose)
	}
	all := joined(repository.observers, o.Observers)
	process := o.process()
	tracker := report.NewTracker(o.ReportWaitAfter, all, func(holder string) string { return repository.knownProcess(holder, process).String() }, o.DisableNames)
	return &Registry{
		onClose:    onClose,
		releasing:  make(chan struct{}, 1),
		repository: repository,
		observers:  all,
		waits:      tracker,
		idle:       o.IdleBetweenTries,
		locks: engine.New(repository.table, o.Waker, heldError, process, all, tracker, engine.Settings{
			Defaults: engine.Request{}.WithTTL(o.TTL).WithAutoRenew(!o.NoRenew).WithFair(o.Fair),
			MaxHold:  o.MaxHold, IdleBetweenTries: o.IdleBetweenTries,
			HandOff: o.HandOff, WaitThroughOutages: o.WaitThroughOutages, CacheCapacity: o.CacheCapacity,
		}),
	}, nil
}

// init lets the packages of this module that stand on the root unwrap its values.
func init() {
	engine.LocksOf = func(registry any) *engine.Locks { return registry.(*Registry).locks }
	engine.TableOf = func(repository any) *locktable.Table { return repository.(*Repository).table }
	report.TrackerOf = func(registry any) *report.Tracker { return registry.(*Registry).waits }
	engine.UseOf = func(lease any) *engine.Use { return lease.(*Lease).held() }
}

// complete checks the options and fills in the defaults. least is the shortest time-to-live.
func (o *RegistryOptions) complete(least time.Duration) error {
	if o.TTL == 0 {
		o.TTL = DefaultTTL
	}
	if o.IdleBetweenTries == 0 {
		o.IdleBetweenTries = DefaultIdleBetweenTries
	}
	if o.ReportWaitAfter == 0 {
		o.ReportWaitAfter = DefaultReportWaitAfter
	}
	if o.CacheCapacity == 0 {
		o.CacheCapacity = DefaultCacheCapacity
	}
	switch {
	case o.IdleBetweenTries < 0:
		return invalid("IdleBetweenTries %v is negative", o.IdleBetweenTries)
	case o.CacheCapacity < 0:
		return invalid("CacheCapacity %d is negative", o.CacheCapacity)
	case o.Fair && o.HandOff:
		return invalid("Fair and HandOff: what is handed over within the process is not in the order of arrival between processes")
	case o.MaxHold != 0 && o.MaxHold < o.TTL:
		return invalid("MaxHold %v is shorter than TTL, %v", o.MaxHold, o.TTL)
	}
	return engine.CheckTTL(o.TTL, least)
}

// joined returns all observers that are not nil, each of them once.
func joined(some, more []*observe.Observer) (all []*observe.Observer) {
	for _, one := range slices.Concat(some, more) {
		if one != nil && !slices.Contains(all, one) {
			all = append(all, one)
		}
	}
	return all
}

// Repository returns the repository of the registry: for [Repository.List] and the like.
func (r *Registry) Repository() *Repository { return r.repository }

// IdleBetweenTries returns the setting of [RegistryOptions]: for packages that wait for
// locks in their own way, as package semaphore does.
func (r *Registry) IdleBetweenTries() time.Duration { return r.idle }

// Observers returns the observers of the registry, and of its repository: for packages that
// report events of their own, as package leader does.
func (r *Registry) Observers() []*observe.Observer { return slices.Clone(r.observers) }

// Obtain returns the lock of key. While the lock is cached, it is the same object each
// time. Obtain sends nothing to the database; a lock need not be returned.
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
	handle, err := r.locks.Obtain(key, lockKey, func(request engine.Request) interface{ Key() string } {
		return &JdbcLock{r.locks, request}
	})
	if err != nil {
		return nil, err
	}
	return handle.(*JdbcLock), nil
}

// ObtainAll returns one lock of several keys, a joint lock: a caller acquires all of them, or none. It sends nothing to the
// database.
//
//   - It excludes callers that want one of the keys alone, also in Java.
//   - There is one [*Lease], and one fencing token, which is higher than every earlier token of each of the keys. [Lease.Guard] pins all
//     rows. If one of the rows is taken or deleted, the whole lease is lost.
//   - Callers may name the keys in any order: joint locks cannot deadlock with each other. While another process has one of the
//     keys, it keeps none of the others. In this registry a waiting caller keeps free keys for a limited time, so it cannot deadlock
//     with callers that hold one key and want another, either. That time grows from nothing to 2 s with each try that fails.
//   - If not all keys are free, the error is a [*HeldError] about a key that was held.
//   - A caller that holds the joint lock enters it again, with the lease's context, by any of the keys or several. If ctx carries
//     leases of some of the keys and not of all, Lock returns [ErrInvalid]: it would wait for itself.
//   - Joint locks are neither handed over to the next caller of the process (see [RegistryOptions.HandOff]) nor cached.
//
// Keys that map to one LOCK_KEY count once, and for a single one ObtainAll is Obtain. No key, more than [MaxKeys] or a bad one
// give an [ErrInvalid]. Different keys that are equal in the collation of LOCK_KEY cannot be acquired together: Lock and TryLock
// return an [ErrInvalid] that names the collation.
func (r *Registry) ObtainAll(keys ...string) (*JdbcLock, error) {
	lockKeys := make([]string, len(keys))
	for i, key := range keys {
		var err error
		if lockKeys[i], err = r.repository.LockKey(key); err != nil {
			return nil, err
		}
	}
	request := r.locks.Request(keys, lockKeys)
	switch n := len(request.Keys()); {
	case n == 0 || n > MaxKeys:
		return nil, invalid("%d keys: a joint lock has 1 to %d", n, MaxKeys)
	case n == 1:
		return r.Obtain(request.Key())
	}
	if err := r.locks.CheckOpen(); err != nil {
		return nil, fmt.Errorf("%w: %q", err, keys)
	}
	return &JdbcLock{r.locks, request}, nil
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
// The lease is the caller's own, not a further entry: Unlock ends it for all that use it.
// fn may therefore unlock early. The release after fn then does nothing and returns the
// same result, see [Lease.Unlock]. In [Registry.ExecuteLockedTx] leave that to the
// registry: the transaction pins the row, so Unlock returns [ErrPinned] there, and ends the
// context, which rolls the transaction back.
func (r *Registry) LeaseFrom(ctx context.Context, key string) (*Lease, error) {
	lockKey, err := r.repository.LockKey(key)
	if err != nil {
		return nil, err
	}
	use, err := r.locks.Carried(ctx, key, lockKey)
	if err != nil {
		return nil, err
	}
	return leaseOf(use), nil
}

// LeasesFrom returns the leases of this registry that ctx carries (see [Lease.Context]) and that
// were not unlocked, the innermost first. Some may be lost. It sends nothing to the database.
func (r *Registry) LeasesFrom(ctx context.Context) []*Lease {
	var leases []*Lease
	for _, use := range r.locks.AllCarried(ctx) {
		leases = append(leases, leaseOf(use))
	}
	return leases
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
	r.locks.Held(func(key, holder string, token int64, deadline time.Time, waiting int) {
		held = append(held, Held{key, holder, token, deadline, waiting})
	})
	return held
}

// Waiting returns how many callers of this registry wait for which keys, by key. Callers that
// wait behind a lease of this registry are counted, too, and one that waits for a joint lock at each of its keys.
func (r *Registry) Waiting() map[string]int {
	return r.locks.Waiting()
}

// DeleteExpired removes the expired rows of the region, of all clients, and returns how
// many there were: those of leases that are over, and those of busy keys that are free (see [Row.Released]). An attempt
// to acquire takes over an expired row by itself. DeleteExpired is for keys that are not used again.
func (r *Registry) DeleteExpired(ctx context.Context) (int64, error) {
	if err := r.locks.CheckOpen(); err != nil {
		return 0, err
	}
	return r.repository.DeleteExpired(ctx)
}

// ExpireUnusedOlderThan forgets the locks that are neither held nor waited for and were
// last used longer than age ago, and returns how many there were. It frees memory and does
// not touch the database: see [Registry.DeleteExpired] for that. Call it from time to time
// if there are many keys; package cleanup does. A negative age gives an [ErrInvalid].
func (r *Registry) ExpireUnusedOlderThan(age time.Duration) (int, error) {
	if age < 0 {
		return 0, invalid("age %v is negative", age)
	}
	return r.locks.Forget(time.Now().Add(-age)), nil
}

// SetCacheCapacity changes how many lock objects are kept. If there are more, unused ones
// are evicted at once, the longest unused first, and others when they are no longer in use.
// A capacity below 1 gives an [ErrInvalid].
func (r *Registry) SetCacheCapacity(capacity int) error {
	if capacity < 1 {
		return invalid("CacheCapacity %d: it must be at least 1", capacity)
	}
	r.locks.SetCapacity(capacity)
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
// ctx limits all of it. If the database does not answer, or is busy all the time as SQLite is while others write,
// Close returns after about 10 s, or the time-to-live if that is longer, also if ctx lasts. One call of Close releases at a time, and
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
	return r.locks.Close(ctx)
}

// closeOnce calls OnClose, or waits for the call of it.
func (r *Registry) closeOnce(ctx context.Context) error {
	_, closed := bounded.Do(ctx, bounded.Grace, func() (struct{}, error) { return struct{}{}, r.onClose() }, nil)
	if errors.Is(closed, bounded.ErrNoAnswer) {
		closed = failure.As(ErrDatabase, "close", closed)
	}
	return closed
}
