package sqllock

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/failure"
)

// A JdbcLock is the lock of one key in a registry. It has the name of Spring's lock that
// it mirrors; there is no JDBC in it.
//
// The context owns a lock, not the goroutine. Lock returns a [*Lease], and a caller that
// locks with [Lease.Context], or a context made from it, enters the same lock again. Any
// other context is another owner and waits, also in the same goroutine.
//
// A JdbcLock is a handle without state of its own. All methods are safe for concurrent
// use.
type JdbcLock struct {
	locks   *engine.Locks
	request engine.Request
}

// Key returns the key as the caller wrote it. That of a joint lock names several of its keys, for
// messages: see [JdbcLock.Keys].
func (l *JdbcLock) Key() string { return l.request.Key() }

// Keys returns the keys of the lock as the caller wrote them: those of a joint lock in the order of
// their LOCK_KEYs (see [Registry.ObtainAll]), else one.
func (l *JdbcLock) Keys() []string { return l.request.Keys() }

// TTL returns the time-to-live of the leases of this handle.
func (l *JdbcLock) TTL() time.Duration { return l.request.TTL() }

// WithTTL returns a handle of the same lock whose leases have another time-to-live, at
// least [MinTTL]. A lease keeps the time-to-live that it was acquired with, also when it
// is entered again through another handle.
//
// In the four-column layout all rows are judged by one time-to-live, so one that differs
// from the registry's is an error there. Errors are returned by the methods of the handle
// that lock: [ErrInvalid].
func (l *JdbcLock) WithTTL(ttl time.Duration) *JdbcLock {
	return &JdbcLock{l.locks, l.request.WithTTL(ttl)}
}

// WithAutoRenew returns a handle of the same lock whose leases are renewed automatically,
// or not, whatever [RegistryOptions.NoRenew] says. MaxHold is the
// registry's. A lease keeps what it was acquired with, also when it is entered again
// through another handle.
func (l *JdbcLock) WithAutoRenew(on bool) *JdbcLock {
	return &JdbcLock{l.locks, l.request.WithAutoRenew(on)}
}

// WithFair returns a handle of the same lock that is acquired in the order of arrival between
// processes, or not, whatever [RegistryOptions.Fair] says, which describes it. A fair lock is not handed
// over, also in a registry with [RegistryOptions.HandOff].
//
// Where there can be no such order, the methods of the handle that lock return an [ErrInvalid].
func (l *JdbcLock) WithFair(on bool) *JdbcLock {
	return &JdbcLock{l.locks, l.request.WithFair(on)}
}

// WithMinHold returns a handle of the same lock that stays taken until d has passed since
// its caller got the lease, however early [Lease.Unlock] comes. It is for a job that is to run at
// most once in that time over all instances, however short it is. 0 means none.
//
//   - Unlock does not wait. It leaves the row to expire when d has passed, and until then
//     the row keeps out the callers of this process too. d may be longer than the
//     time-to-live.
//   - If the lock is entered several times, the longest d counts, from when it was first acquired.
//   - d does not make a lease last longer: after a crash, or if the lease is lost, the lock
//     is free when its time-to-live has ended.
//   - [Registry.Close] leaves the row like Unlock, so that the job does not run on another instance
//     because this one is replaced.
//
// If d is negative, the methods of the handle that lock return an [ErrInvalid].
func (l *JdbcLock) WithMinHold(d time.Duration) *JdbcLock {
	return &JdbcLock{l.locks, l.request.WithMinHold(d)}
}

// forever is how long Lock waits: for as long as its context lasts.
const forever time.Duration = -1

// Lock acquires the lock, waiting for as long as ctx lasts. The context of the lease is
// made from ctx. Use [JdbcLock.TryLockFor] to limit the wait without limiting the work.
//
// If ctx ends first, the error is an [ErrNotAcquired] and ctx's own, or an [ErrDatabase] and
// ctx's own if the database did not answer or was failing then. An [ErrDatabase] ends the wait at once, unless [RegistryOptions.WaitThroughOutages] is set, and so does [ErrClosed]. If
// the database does not answer the first caller of a key in this registry, the callers that
// wait behind it get the same error. After any error, the caller does not hold the lock.
//
// If ctx carries a lease of this lock, the lock is entered again at once and the lease
// renewed, unless a guarded transaction has its row pinned: then the lease is not extended.
// The row is released with the last of its leases. If that lease is lost, so is the new
// one: [ErrLockLost].
func (l *JdbcLock) Lock(ctx context.Context) (*Lease, error) {
	return l.lock(ctx, forever)
}

// TryLock acquires the lock if it is free or expired, and returns [ErrNotAcquired] if it
// is held: the [*HeldError] says by which holder. It does not wait, except for the
// database.
func (l *JdbcLock) TryLock(ctx context.Context) (*Lease, error) {
	return l.lock(ctx, 0)
}

// TryLockFor is Lock with a limit to the wait, after which it returns [ErrNotAcquired], or
// [ErrDatabase] if the database has not answered by then.
// 0 means TryLock; a negative wait gives an [ErrInvalid].
func (l *JdbcLock) TryLockFor(ctx context.Context, wait time.Duration) (*Lease, error) {
	if wait < 0 {
		return nil, invalid("wait %v for %q is negative", wait, l.Key())
	}
	return l.lock(ctx, wait)
}

func (l *JdbcLock) lock(ctx context.Context, wait time.Duration) (*Lease, error) {
	lease := new(Lease)
	if err := l.locks.Lock(ctx, l.request, wait, &lease.use, lease); err != nil {
		return nil, err
	}
	return lease, nil
}

// ExecuteLocked runs fn while it holds the lock, waiting for it as long as ctx lasts. The
// lock is released when fn returns or panics. fn's error and that of the release are
// joined.
//
// The context of fn is that of the lease. It ends with cause [ErrLockLost] if the lease is
// lost, and carries the lease, so that fn may lock the key again, and get the lease from
// [Registry.LeaseFrom].
func (l *JdbcLock) ExecuteLocked(ctx context.Context, fn func(context.Context) error) error {
	if fn == nil {
		return errNoFunction()
	}
	lease, err := l.Lock(ctx)
	return execute(ctx, lease, err, fn)
}

// ExecuteLockedFor is ExecuteLocked with a limit to the wait for the lock, after which it
// returns [ErrNotAcquired] without having run fn. 0 means a single try.
func (l *JdbcLock) ExecuteLockedFor(ctx context.Context, wait time.Duration, fn func(context.Context) error) error {
	if fn == nil {
		return errNoFunction()
	}
	lease, err := l.TryLockFor(ctx, wait)
	return execute(ctx, lease, err, fn)
}

func errNoFunction() error { return invalid("there is no function to run") }

// execute runs fn under a lease, and releases it.
func execute(ctx context.Context, lease *Lease, err error, fn func(context.Context) error) (result error) {
	if err != nil {
		return err
	}
	defer func() { result = failure.Join(result, lease.Unlock(ctx)) }()
	return fn(lease.Context()) //nolint:contextcheck // it is made from ctx
}
