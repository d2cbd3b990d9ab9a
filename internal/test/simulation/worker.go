package simulation

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
)

const (
	// longerTTL is by how much a lease is renewed for longer than its time-to-live.
	longerTTL      = 3
	longestMinHold = 8 * time.Second
	longestWait    = 40 * time.Second
)

// A worker is a caller in a process. It locks again and again.
type worker struct {
	*process

	world  *World
	name   string
	random *source
}

func (k *worker) live() {
	for k.runs() && k.world.pause(k.thinkingTime()) && k.runs() {
		k.act()
	}
}

// thinkingTime returns when the worker acts next. In a crowded world it is just after a full
// second, as for all others.
func (k *worker) thinkingTime() time.Duration {
	thinks := k.random.around(k.world.plan.Think)
	if k.world.plan.Shape != Crowded {
		return thinks
	}
	until := time.Now().Add(thinks).Truncate(time.Second).Add(time.Second)
	return time.Until(until) + k.random.upTo(k.world.plan.Latency)
}

// act does one thing that a caller may do.
func (k *worker) act() {
	w := k.world
	ctx, cancel := k.context()
	defer cancel()
	key := w.keys[k.random.intN(len(w.keys))]
	if w.plan.Joint && k.random.chance(0.4) {
		k.actJointly(ctx)
		return
	}
	if w.plan.Permits > 0 && k.random.chance(0.4) {
		k.actWithPermits(ctx)
		return
	}
	if w.plan.ReadWrite && k.random.chance(0.5) {
		k.readOrWrite(ctx)
		return
	}
	switch n := k.random.intN(100); {
	case n < 50:
		k.lock(ctx, key)
	case n < 60:
		k.tryLock(ctx, key)
	case n < 75:
		k.executeLocked(ctx, key)
	case n < 92:
		k.executeLockedTx(ctx, key)
	default:
		k.tidyUp(ctx, key)
	}
}

// context returns the context of one thing that the worker does.
func (k *worker) context() (context.Context, context.CancelFunc) {
	w := k.world
	ctx, cancel := context.WithCancel(k.ctx)
	if w.plan.Can(Cancel) && !w.isCalm() && k.random.chance(0.3) {
		timer := time.AfterFunc(k.random.upTo(5*time.Second), cancel)
		return ctx, func() {
			timer.Stop()
			cancel()
		}
	}
	return ctx, cancel
}

// A handle is a lock with some of its settings.
type handle struct {
	*sqllock.JdbcLock

	ttl, minHold time.Duration
}

// obtain returns a handle of one key, or of several together, with random settings.
func (k *worker) obtain(keys ...string) (h handle, ok bool) {
	l, err := k.registry.ObtainAll(keys...)
	if err != nil {
		k.expect("ObtainAll", err, sqllock.ErrCapacity, sqllock.ErrClosed)
		return handle{}, false
	}
	h = handle{l, k.plan.Registry.TTL, 0}
	if k.plan.MinHold && k.random.chance(0.3) {
		h.minHold = k.random.upTo(longestMinHold)
		h.JdbcLock = h.WithMinHold(h.minHold)
	}
	if k.random.chance(0.1) {
		h.JdbcLock = h.WithAutoRenew(k.random.chance(0.5))
	}
	if k.world.plan.Layout == dialect.Spring7 && k.random.chance(0.1) {
		h.ttl *= time.Duration(1 + k.random.intN(longerTTL))
		h.JdbcLock = h.WithTTL(h.ttl)
	}
	return h, true
}

func (k *worker) lock(ctx context.Context, keys ...string) {
	h, ok := k.obtain(keys...)
	if !ok {
		return
	}
	wait := k.random.upTo(longestWait)
	name := "TryLockFor " + nameOf(keys)
	k.note("%s %v", name, wait)
	a := k.attempt(ctx, name, keys, true)
	lease, err := h.TryLockFor(ctx, wait)
	k.ended(a, wait, err)
	k.checkPatience(a, wait, err)
	if err == nil {
		k.hold(h, lease, a.began, nil)
	}
}

// checkPatience checks that a wait through outages has not ended with an error of the database
// before its limit or its context has.
func (k *worker) checkPatience(a *attempt, limit time.Duration, err error) {
	gaveUp := errors.Is(err, sqllock.ErrDatabase) && a.ctx.Err() == nil && time.Since(a.began) < limit
	if gaveUp && k.plan.Registry.WaitThroughOutages && !k.isDead() && !k.isClosed() && !k.world.isBroken() {
		k.world.violated("gave up", "%s: %s has ended %v before its limit: %v", k.name, a.name, limit-time.Since(a.began), err)
	}
}

func (k *worker) tryLock(ctx context.Context, keys ...string) {
	h, ok := k.obtain(keys...)
	if !ok {
		return
	}
	a := k.attempt(ctx, "TryLock "+nameOf(keys), keys, false)
	lease, err := h.TryLock(ctx)
	k.ended(a, k.longestTry(a, h.ttl), err)
	if err == nil {
		k.hold(h, lease, a.began, nil)
	}
}

// answerTimeout is how long the library waits for an answer, or the time-to-live if that is longer.
const answerTimeout = 10 * time.Second

// longestTry is how long a single try may take: a moment while nothing is wrong. Otherwise each statement
// has a limit: one that reads, and for each of three holders a deletion, alone after a batch, an
// acquisition, and a deletion that has a second.
func (k *worker) longestTry(a *attempt, ttl time.Duration) time.Duration {
	if k.world.wasSettled(a.began) {
		return patience
	}
	answer := max(answerTimeout, ttl)
	return answer + 3*(batchTimeout+2*answer+time.Second)
}

// mayBeTooLate reports whether err says that an answer came after the end of its lease, and statements have waited for each
// other since began. Where SQLite does not wait for another writer, a renewal is refused instead, and sent again until
// its lease ends: a writer that waits for readers has lost nine races in the last 450 ms of a second.
func (w *World) mayBeTooLate(err error, began time.Time) bool {
	return strings.Contains(err.Error(), "took longer to answer than") && w.wasSlow(began) ||
		w.plan.Busy == 0 && errors.Is(err, context.DeadlineExceeded)
}

// ended checks how a call that locks has ended.
func (k *worker) ended(a *attempt, limit time.Duration, err error) {
	k.note("%s: %v", a.name, err)
	a.end(err)
	k.timely(a.name, a.began, a.within(limit)+k.handedOverLate()+slack)
	k.expect(a.name, err, sqllock.ErrNotAcquired, sqllock.ErrDatabase, sqllock.ErrCapacity)
	// Statements that wait for each other may take longer than a short wait.
	silent := limit < batchTimeout && errors.Is(err, bounded.ErrNoAnswer)
	if errors.Is(err, sqllock.ErrDatabase) && k.world.isSettled() && !silent && !k.world.mayBeTooLate(err, a.began) {
		k.world.violated("error", "%s: %s, while nothing is wrong: %v", k.name, a.name, err)
	}
	a.checkOwnRow(err)
}

// handedOverLate is how long it may take to release a lock that was handed over to a caller when
// it had stopped waiting.
func (k *worker) handedOverLate() time.Duration {
	if k.plan.Registry.HandOff && !k.world.isSettled() {
		return k.world.plan.LongestTTL()
	}
	return 0
}

// hold works under a lease, and unlocks it. began is when the call that locked has begun, and writer
// as in acquiredWithin.
func (k *worker) hold(h handle, lease *sqllock.Lease, began time.Time, writer *claim) {
	if k.isDead() {
		_ = lease.Unlock(context.Background())
		return
	}
	w := k.world
	c := w.witness.acquiredWithin(k.process, lease, writer)
	k.note("holds %s as no. %d, token %d", c.name(), c.number, c.token)
	if h.minHold > 0 {
		w.witness.staysUntil(c, h.minHoldEnd(lease, began))
	}
	k.work(lease.Context(), c)
	if k.downgrades(c) {
		return
	}
	w.witness.releases(c)
	if h.minHold > 0 {
		w.witness.keeps(c.holder)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if k.random.chance(0.1) {
		cancel() // Unlock does its work all the same
	}
	deadline := lease.Deadline()
	unlocks := time.Now()
	err := lease.Unlock(ctx)
	w.witness.released(c)
	k.note("Unlock %s no. %d: %v", c.name(), c.number, err)
	deadline = later(deadline, lease.Deadline()) // a renewal may have been under way
	k.timely("Unlock", unlocks, max(0, deadline.Sub(unlocks))+slack)
	k.expect("Unlock "+c.name(), err, sqllock.ErrLockLost, sqllock.ErrDatabase, sqllock.ErrPinned)
	k.noteLost(c, err)
	switch {
	case h.minHold == 0 || k.isDead():
	case err == nil:
		w.witness.checkMinHold(c)
	case errors.Is(err, sqllock.ErrClosed):
		k.keeps(c)
	}
}

// minHoldEnd returns until when the row stays at least, for a lease that was just acquired by a
// call that began at an instant. A clock of the database that is fast makes it shorter.
func (h handle) minHoldEnd(lease *sqllock.Lease, began time.Time) time.Time {
	margin := min(h.ttl/10, 500*time.Millisecond)
	acquired := later(began, lease.Deadline().Add(margin-h.ttl))
	return acquired.Add(h.minHold - h.minHold/50 - 2*clockStep)
}

// noteLost notes that the row of a lease that was lost stays until it expires.
func (k *worker) noteLost(c *claim, err error) {
	if c != nil && errors.Is(err, sqllock.ErrLockLost) {
		k.world.witness.keeps(c.holder)
	}
}

// work is what is done under a lease, until ctx ends or the worker has finished.
func (k *worker) work(ctx context.Context, c *claim) {
	w := k.world
	if w.plan.Can(Pause) && !w.isCalm() && k.random.chance(0.05) {
		time.Sleep(k.random.upTo(2 * k.plan.Registry.TTL)) // it does not look at ctx meanwhile
	}
	for range 1 + k.random.intN(3) {
		if !k.sleep(ctx, k.random.around(w.plan.Hold)) {
			return
		}
		switch k.random.intN(8) {
		case 0:
			k.renew(ctx, c, "Renew", c.lease.Renew)
		case 1:
			if w.plan.Layout == dialect.Spring7 {
				k.renew(ctx, c, "RenewFor", func(ctx context.Context) error {
					return c.lease.RenewFor(ctx, k.plan.Registry.TTL*longerTTL)
				})
			}
		case 2:
			k.reenter(ctx, c)
			k.goesDeeper(ctx, c)
		case 3:
			k.guard(ctx, c)
		}
	}
}

// sleep waits for d. It returns false if ctx ends, a moment after that: what others do in that
// instant comes first.
func (k *worker) sleep(ctx context.Context, d time.Duration) bool {
	if bounded.Sleep(ctx, d) {
		return true
	}
	time.Sleep(k.random.latency(&k.world.plan))
	return false
}

// renew renews a lease by a call. ctx is its own.
func (k *worker) renew(ctx context.Context, c *claim, name string, renew func(context.Context) error) {
	k.world.witness.renews(c)
	deadline := c.lease.Deadline()
	call := k.begin(ctx, name)
	err := renew(ctx)
	k.note("%s: %v", name, err)
	call.returned(max(0, deadline.Sub(call.began)))
	if err == nil && !k.isDead() {
		k.world.witness.checkRenewed(c, call.began)
	}
	if ctx.Err() == nil || !errors.Is(err, ctx.Err()) {
		k.expect(name, err, sqllock.ErrDatabase, sqllock.ErrLockLost, sqllock.ErrPinned)
	}
}

// reenter locks the key once more under its own lease, or one or several of its keys. That renews
// the lease.
func (k *worker) reenter(ctx context.Context, c *claim) {
	k.world.witness.renews(c)
	deadline := c.lease.Deadline()
	call := k.begin(ctx, "Lock again")
	keys := k.someOf(c.keys, 1)
	lock, err := k.registry.ObtainAll(keys...)
	var inner *sqllock.Lease
	if err == nil {
		inner, err = lock.Lock(ctx)
	}
	k.note("enter %s again by %s: %v", c.name(), nameOf(keys), err)
	call.returned(max(0, deadline.Sub(call.began)))
	if err != nil {
		if ctx.Err() == nil {
			k.expect(call.name, err, sqllock.ErrDatabase, sqllock.ErrLockLost, sqllock.ErrCapacity, sqllock.ErrPinned)
		}
		return
	}
	if inner.Token() != c.token || inner.Holder() != c.holder {
		k.world.violated("re-entry", "%s entered %v with token %d as %s", k.name, c, inner.Token(), k.world.alias(inner.Holder()))
	}
	k.sleep(ctx, k.random.around(k.world.plan.Hold)/4)
	began := time.Now()
	err = inner.Unlock(context.Background())
	k.timely("Unlock again", began, 0)
	k.expect("Unlock again", err, sqllock.ErrLockLost, sqllock.ErrDatabase)
}

// tidyUp does what an application does from time to time.
func (k *worker) tidyUp(ctx context.Context, key string) {
	w := k.world
	switch k.random.intN(4) {
	case 0:
		_, err := k.registry.ExpireUnusedOlderThan(k.random.upTo(time.Minute))
		k.expect("ExpireUnusedOlderThan", err)
	case 1:
		call := k.begin(ctx, "DeleteExpired")
		_, err := k.registry.DeleteExpired(ctx)
		call.returned(unlimited) // but for its context
		if ctx.Err() == nil {
			k.expect("DeleteExpired", err, sqllock.ErrDatabase)
		}
	case 2:
		for _, held := range k.registry.Held() {
			if held.Deadline.Before(time.Now()) {
				w.violated("held", "%s: Held has a lease that is over: %+v", k.name, held)
			}
		}
	default:
		if w.plan.Can(Deletion) && !w.isCalm() {
			w.deleteByForce(key)
		}
	}
}

func (k *worker) note(format string, args ...any) {
	if !k.isDead() {
		k.world.note(k.name, format, args...)
	}
}
