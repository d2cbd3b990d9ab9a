package sqllock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

// A JdbcLock is the lock of one key in a registry. It has the name of Spring's
// lock that it mirrors; there is no JDBC in it.
//
// Ownership travels with the context, not with the goroutine: Lock gives a
// [*Lease], and whoever locks with [Lease.Context], or a context made from it,
// enters the same lock again. Any other context is another owner and waits, also
// in the same goroutine.
//
// A JdbcLock is a handle without state of its own. All methods are safe for
// concurrent use.
type JdbcLock struct {
	registry *Registry
	key      string // as the caller wrote it
	lockKey  string // what stands in LOCK_KEY
	ttl      time.Duration
	// autoRenew says that heartbeats renew the leases
	autoRenew bool
}

// Key returns the key as the caller wrote it.
func (l *JdbcLock) Key() string { return l.key }

// WithTTL returns a handle of the same lock whose leases have another
// time-to-live, at least [MinTTL]. A lease keeps the time-to-live that it was
// acquired with, also when it is entered again through another handle.
//
// In the four-column layout a contender judges all rows by one time-to-live, so
// one that differs from the registry's is an error there. Errors are returned by
// the methods of the handle that lock: [ErrInvalid].
func (l *JdbcLock) WithTTL(ttl time.Duration) *JdbcLock {
	other := *l
	other.ttl = ttl
	return &other
}

// checkTTL refuses a time-to-live that a lease of key cannot have.
func (r *Registry) checkTTL(key string, ttl time.Duration) error {
	if err := checkTTL(ttl); err != nil {
		return err
	}
	if ttl != r.ttl && r.repository.layout == dialect.Spring6 {
		return invalid("time-to-live %v of %q: without the column EXPIRED_AFTER all locks have the registry's, %v (run `sqllock migrate up`)",
			ttl, key, r.ttl)
	}
	return nil
}

// WithAutoRenew returns a handle of the same lock whose leases are renewed by
// themselves, or not, whatever [RegistryOptions.AutoRenew] says. MaxHold and OnRenewal
// are the registry's. A lease keeps what it was acquired with, also when it is entered
// again through another handle.
func (l *JdbcLock) WithAutoRenew(on bool) *JdbcLock {
	other := *l
	other.autoRenew = on
	return &other
}

// Lock acquires the lock, waiting for as long as ctx lasts. The context of the
// lease is made from ctx; use [JdbcLock.TryLockFor] to limit the wait without
// limiting the work.
//
// If ctx ends first, the error is an [ErrNotAcquired] and ctx's own. An
// [ErrDatabase] or [ErrClosed] ends the wait at once. If the database does not answer the
// first caller of a key in this registry, those who wait behind it get the same error.
// Whatever the error, nothing
// is held.
//
// If ctx carries a lease of this lock, the lock is entered again at once and the
// lease renewed; the row is released with the last of its leases. If that lease
// is lost, so is the new one: [ErrLockLost].
func (l *JdbcLock) Lock(ctx context.Context) (*Lease, error) {
	return l.lock(ctx, forever)
}

// TryLock acquires the lock if it is free or expired, and returns
// [ErrNotAcquired] if it is held: the [*HeldError] says by whom. It does not
// wait, except for the database.
func (l *JdbcLock) TryLock(ctx context.Context) (*Lease, error) {
	return l.lock(ctx, notAtAll)
}

// TryLockFor is Lock with a limit to the wait, after which it returns
// [ErrNotAcquired]. 0 means TryLock; a negative wait gives an [ErrInvalid].
func (l *JdbcLock) TryLockFor(ctx context.Context, wait time.Duration) (*Lease, error) {
	if wait < 0 {
		return nil, invalid("wait %v for %q is negative", wait, l.key)
	}
	return l.lock(ctx, wait)
}

// How long lock waits, if not for so long.
const (
	notAtAll time.Duration = 0
	forever  time.Duration = -1
)

// lock acquires for ctx, the caller's context.
func (l *JdbcLock) lock(ctx context.Context, wait time.Duration) (*Lease, error) {
	if err := l.registry.checkTTL(l.key, l.ttl); err != nil {
		return nil, err
	}
	if h := l.registry.carried(ctx, l.lockKey); h != nil {
		if lease, err := h.reenter(ctx, l.key); lease != nil || err != nil {
			return lease, err
		}
	}
	h := newHold(l)
	// What will be the lease's context ends the wait, too, if the registry is closed.
	lease, waiting := h.newLease(ctx, l.key)
	if err := l.registry.admit(h, lease.cancel); err != nil {
		lease.cancel(nil)
		return nil, err
	}
	defer l.registry.entering.Done()
	if wait > 0 {
		limited, cancel := context.WithTimeout(waiting, wait)
		defer cancel()
		waiting = limited
	}
	seen, err := l.enter(waiting, h, wait == notAtAll)
	if err == nil {
		return l.begin(ctx, waiting, lease)
	}
	defer lease.cancel(nil)
	silent := silenceOf(waiting)
	if ended(waiting) == nil {
		l.registry.shareSilence(h, err)
	}
	h.entry.mutex.Release(h)
	l.registry.sendAway(h)
	switch {
	case l.registry.closing.Err() != nil:
		return nil, fmt.Errorf("%w: %q", ErrClosed, l.key)
	case silent != nil:
		return nil, silent
	case ended(waiting) != nil || errors.Is(err, errHeld):
		return nil, notAcquired(ctx, l.key, seen)
	default:
		return nil, err
	}
}

// begin begins the lease, unless its row was handed on to a caller who has given up.
func (l *JdbcLock) begin(ctx, waiting context.Context, lease *Lease) (*Lease, error) {
	h := lease.hold
	gaveUp := !h.inherited.IsZero() && ended(waiting) != nil
	if err := h.begin(lease); err != nil {
		lease.cancel(nil)
		return nil, err
	}
	if !gaveUp {
		return lease, nil
	}
	if err := lease.Unlock(ctx); err != nil {
		return nil, err
	}
	return nil, notAcquired(ctx, l.key, Row{})
}

// errHeld ends a single try that found the lock held.
var errHeld = errors.New("held")

// enter makes h own the local mutex, then the row. On errHeld, or when ctx has
// ended, seen is who had the lock when last looked at.
func (l *JdbcLock) enter(ctx context.Context, h *hold, once bool) (seen Row, err error) {
	if once {
		if _, ok := h.entry.mutex.TryLock(h); !ok {
			return h.entry.mutex.Owner().row(), errHeld
		}
	} else if _, err := h.entry.mutex.Lock(ctx, h); err != nil {
		return h.entry.mutex.Owner().row(), err
	}
	if h.disinherit(); !h.inherited.IsZero() {
		return Row{}, nil
	}
	if !once && !h.entry.waitForOthers(ctx) {
		return Row{}, ctx.Err()
	}
	return l.contend(ctx, h, once)
}

// contend acquires the row for h. A failed attempt is followed by polling, which
// writes nothing, until the row is free or expired; only then is another attempt
// made.
func (l *JdbcLock) contend(ctx context.Context, h *hold, once bool) (seen Row, err error) {
	bell := bell{hold: h}
	defer bell.hangUp()
	seen, err = l.lookIfTaken(ctx, h, once)
	for free := seen.free(); err == nil; free = true {
		if free {
			var acquired bool
			if seen, acquired, err = l.acquire(ctx, h, once); acquired || err != nil {
				return seen, err
			}
			h.entry.takenUntil = time.Now().Add(min(seen.Left, h.ttl))
		}
		if once {
			return seen, errHeld
		}
		seen, err = l.watch(ctx, seen, &bell)
	}
	return seen, err
}

// lookIfTaken reads the row if an attempt has found it taken and its lease may last, and before
// a single try on MariaDB. A refused attempt locks the row until its transaction ends, and
// costs more round trips, so processes that try again and again should not have the row
// locked most of the time: its holder has to renew it. On MariaDB a refused attempt locks it
// for two statements and the end of the transaction, so that a few dozen processes can.
func (l *JdbcLock) lookIfTaken(ctx context.Context, h *hold, once bool) (Row, error) {
	repository := l.registry.repository
	may := time.Now().Before(h.entry.takenUntil) || once && repository.triesLockLong
	if !may || repository.abandoned.has(h.lockKey) { // an attempt deletes that row
		return Row{}, nil
	}
	seen, err := repository.lookInTurn(ctx, h.params())
	h.entry.takenUntil = time.Now().Add(min(seen.Left, h.ttl))
	return seen, err
}

// acquire makes an attempt for h. A holder that must not be used again, because the row of an
// attempt may still be deleted, is replaced by another, with which it tries again.
func (l *JdbcLock) acquire(ctx context.Context, h *hold, once bool) (seen Row, acquired bool, err error) {
	repository := l.registry.repository
	for spent := 1; ; spent++ {
		h.sent = time.Now()
		got, err := repository.acquire(ctx, h.params())
		switch {
		case got.Acquired && h.late():
			h.abandon(ctx)
			if once || spent == maxSpent {
				return Row{}, false, tooLate(l.key)
			}
		case got.Acquired:
			h.token, h.since = got.Token, h.sent
			return Row{}, true, nil
		case !errors.Is(err, errOutcomeUnknown) || spent == maxSpent:
			return got.Row, false, err
		}
		h.holder = repository.NewHolder()
	}
}

// maxSpent is how many holders one call of Lock may use up in vain: the database answers too
// late, or it is not known what an attempt has done.
const maxSpent = 3

// watch looks at the row, which was last seen as given, until it is free or
// expired, or the bell rings.
func (l *JdbcLock) watch(ctx context.Context, seen Row, bell *bell) (Row, error) {
	pause := l.registry.pause(seen)
	if bell.hang() {
		pause = 0 // what was released before that rang for nobody
	}
	for ; ; pause = l.registry.pause(seen) {
		rang, ok := bell.wait(ctx, pause)
		switch {
		case !ok:
			return seen, ctx.Err()
		case rang, seen.free(), l.registry.repository.abandoned.has(bell.hold.lockKey): // see lookIfTaken
			return seen, nil
		}
		row, _, err := l.registry.repository.look(ctx, bell.hold.params())
		if err != nil {
			return seen, err
		}
		if seen = row; seen.free() {
			return seen, nil
		}
	}
}

// pause is the time until the next poll of a row: IdleBetweenTries, less a random
// part so that waiters do not poll in step, or what is left of the lease if that
// is less.
func (r *Registry) pause(seen Row) time.Duration {
	idle := r.idle - rand.N(r.idle/5+1)
	if seen.free() {
		// The row was about to go: try again almost at once.
		return min(idle, time.Millisecond+rand.N(4*time.Millisecond))
	}
	if seen.Left >= idle { // it may be the longest Duration there is: add nothing to it
		return idle
	}
	// A row is expired only after its last microsecond, or millisecond.
	return min(idle, seen.Left+time.Millisecond+rand.N(min(r.idle/20, longestScatter)+1))
}

// longestScatter bounds the random time after an expiry, within which all who wait
// for the lock try to acquire it. It is short: until then the lock is free and unused.
const longestScatter = 5 * time.Millisecond
