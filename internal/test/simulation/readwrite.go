package simulation

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// readWriteLock returns the read-write lock of the process, or nil.
func (k *worker) readWriteLock() *rwlock.Lock {
	all := &k.seats
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.readWrite == nil && k.world.plan.ReadWrite {
		var err error
		all.readWrite, err = rwlock.New(k.registry, readWriteKey)
		k.expect("rwlock.New", err, sqllock.ErrCapacity)
	}
	return all.readWrite
}

// readOrWrite does one thing that a caller may do with a read-write lock.
func (k *worker) readOrWrite(ctx context.Context) {
	l := k.readWriteLock()
	if l == nil {
		return
	}
	if k.random.chance(0.1) {
		l = l.WithAutoRenew(k.random.chance(0.5))
	}
	wait := k.random.upTo(longestWait)
	switch d := k.random.intN(100); {
	case d < 30:
		k.reads("TryRLockFor", wait).call(ctx, l.TryRLockFor)
	case d < 40:
		k.reads("TryRLock", 0).call(ctx, l.TryRLockFor)
	case d < 50:
		k.reads("ExecuteRLockedFor", wait).execute(ctx, l.ExecuteRLockedFor)
	case d < 75:
		k.writes("TryLockFor", wait).call(ctx, l.TryLockFor)
	case d < 85:
		k.writes("TryLock", 0).call(ctx, l.TryLockFor)
	case d < 95:
		k.writes("ExecuteLockedFor", wait).execute(ctx, l.ExecuteLockedFor)
	default:
		w := k.world
		w.deleteSeat(k, append(w.readerKeys(), readWriteKey, readWriteKey))
		began := time.Now()
		_, err := l.Readers(ctx)
		if ctx.Err() == nil {
			k.expect("Readers", err, sqllock.ErrDatabase)
		}
		k.timely("Readers", began, k.longestSeating(&attempt{call: &call{began: began}}))
	}
}

func (k *worker) reads(name string, wait time.Duration) seating {
	return seating{k, name + " " + readWriteKey, []string{readWriteKey}, wait, nil}
}

func (k *worker) writes(name string, wait time.Duration) seating {
	return seating{k, name + " " + readWriteKey, append(k.world.readerKeys(), readWriteKey), wait, nil}
}

// goesDeeper locks under a lease of the read-write lock, as only its holder may.
func (k *worker) goesDeeper(ctx context.Context, c *claim) {
	l := k.readWriteLock()
	_, reads := c.reads()
	switch {
	case l == nil, !reads && !c.isWriter(), k.isDead():
	case reads && k.random.chance(0.5):
		if _, err := l.Lock(ctx); err == nil && !k.isDead() {
			k.world.violated("re-entry", "%s: Lock inside %v", k.name, c)
		} else if ctx.Err() == nil {
			k.expect("Lock inside a read lease", err, sqllock.ErrInvalid, sqllock.ErrLockLost)
		}
	default:
		k.enterAgain(ctx, c, l, reads)
	}
}

// enterAgain acquires a read lease under one of the read-write lock.
func (k *worker) enterAgain(ctx context.Context, c *claim, l *rwlock.Lock, reads bool) {
	k.world.witness.renews(c)
	a := k.attempt(ctx, "RLock inside", nil, false)
	inner, err := l.RLock(ctx)
	k.note("RLock inside %s: %v", c.name(), err)
	a.returned(k.longestSeating(a))
	if err != nil {
		if ctx.Err() == nil {
			k.expect(a.name, err, sqllock.ErrDatabase, sqllock.ErrLockLost, sqllock.ErrPinned)
		}
		return
	}
	same := inner.Holder() == c.holder
	if same != reads && !k.isDead() && c.lives() {
		k.world.violated("re-entry", "%s: RLock inside %v gave %s", k.name, c, k.world.alias(inner.Holder()))
	}
	if !reads {
		k.holdInside(inner, c)
		return
	}
	k.sleep(ctx, k.random.around(k.world.plan.Hold)/4)
	err = inner.Unlock(context.Background())
	k.expect("Unlock again", err, sqllock.ErrLockLost, sqllock.ErrDatabase)
}

// holdInside holds a read lease under a write lease.
func (k *worker) holdInside(inner *sqllock.Lease, writer *claim) {
	w := k.world
	c := w.witness.acquiredWithin(k.process, inner, writer)
	k.sleep(inner.Context(), k.random.around(w.plan.Hold)/4)
	w.witness.releases(c)
	err := inner.Unlock(context.Background())
	w.witness.released(c)
	k.expect("Unlock inside", err, sqllock.ErrLockLost, sqllock.ErrDatabase, sqllock.ErrPinned)
	k.noteLost(c, err)
}

// lastOf returns the claim that was acquired last of a key.
func (w *witness) lastOf(key string) *claim {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.last[key]
}

// isGone reports whether the row of c was deleted by force.
func (w *witness) isGone(c *claim) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.isForced(c.holder)
}

// isWriter reports whether c has the write lock.
func (c *claim) isWriter() bool { return slices.Contains(c.keys, readWriteKey) }

// downgrades exchanges the write lock of c for a read lock now and then, and holds that. It returns
// false if c is still to be unlocked.
func (k *worker) downgrades(c *claim) bool {
	l := k.readWriteLock()
	if l == nil || !c.isWriter() || k.isDead() || !k.random.chance(0.3) {
		return false
	}
	w := k.world
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	a := k.attempt(ctx, "Downgrade", nil, false)
	w.witness.releases(c) // Downgrade unlocks it
	read, err := l.Downgrade(ctx, c.lease)
	k.note("Downgrade no. %d: %v", c.number, err)
	a.returned(k.longestSeating(a))
	if err != nil {
		// On SQLite a try is refused while others write; then no holder is named.
		k.expect(a.name, err, sqllock.ErrDatabase, sqllock.ErrLockLost, sqllock.ErrNotAcquired)
		if held := new(sqllock.HeldError); errors.As(err, &held) && held.Holder != "" && !k.isDead() && c.lives() && !w.witness.isGone(c) {
			w.violated("downgrade", "%s: while %v had the write lock, another came in: %v", k.name, c, err)
		}
		return false
	}
	w.witness.released(c)
	if last := w.witness.lastOf(readWriteKey); last != c && !w.witness.isGone(c) && !k.isDead() {
		w.violated("downgrade", "%s: %v has become a reader, and %v was a writer in between", k.name, c, last)
	}
	w.witness.keeps(c.holder) // it is not known whether the row could be released
	k.hold(handle{ttl: k.plan.Registry.TTL}, read, a.began, c)
	return true
}
