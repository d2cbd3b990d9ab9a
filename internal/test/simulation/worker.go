package simulation

import (
	"context"
	"errors"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
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
	for k.runs() && k.world.pause(k.random.around(k.world.plan.Think)) && k.runs() {
		k.act()
	}
}

// act does one thing that a caller may do.
func (k *worker) act() {
	w := k.world
	ctx, cancel := k.context()
	defer cancel()
	key := w.keys[k.random.intN(len(w.keys))]
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

// obtain returns a handle with some of its settings.
func (k *worker) obtain(key string) (l *sqllock.JdbcLock, minHold bool, ok bool) {
	w := k.world
	l, err := k.registry.Obtain(key)
	if err != nil {
		k.expect("Obtain", err, sqllock.ErrCapacity, sqllock.ErrClosed)
		return nil, false, false
	}
	if k.plan.MinHold && k.random.chance(0.3) {
		l, minHold = l.WithMinHold(k.random.upTo(longestMinHold)), true
	}
	if k.random.chance(0.1) {
		l = l.WithAutoRenew(k.random.chance(0.5))
	}
	if w.plan.Layout == dialect.Spring7 && k.random.chance(0.1) {
		l = l.WithTTL(k.plan.Registry.TTL * time.Duration(1+k.random.intN(longerTTL)))
	}
	return l, minHold, true
}

func (k *worker) lock(ctx context.Context, key string) {
	l, minHold, ok := k.obtain(key)
	if !ok {
		return
	}
	wait := k.random.upTo(longestWait)
	began := time.Now()
	k.note("TryLockFor %s %v", key, wait)
	waits := k.world.witness.waits(k.process, key)
	lease, err := l.TryLockFor(ctx, wait)
	k.world.witness.ends(waits)
	k.ended(ctx, "TryLockFor "+key, began, wait, err)
	if err == nil {
		k.hold(lease, minHold)
	}
}

func (k *worker) tryLock(ctx context.Context, key string) {
	l, minHold, ok := k.obtain(key)
	if !ok {
		return
	}
	began := time.Now()
	lease, err := l.TryLock(ctx)
	k.ended(ctx, "TryLock "+key, began, longestTry, err)
	if err == nil {
		k.hold(lease, minHold)
	}
}

// longestTry is how long a single try may take if the database does not answer: a batch, and
// a statement alone for each of three holders, or the longest time-to-live in place of it.
const longestTry = 100 * time.Second

// ended checks how a call that locks has ended.
func (k *worker) ended(ctx context.Context, call string, began time.Time, limit time.Duration, err error) {
	k.note("%s: %v", call, err)
	if deadline, ok := ctx.Deadline(); ok {
		limit = min(limit, deadline.Sub(began))
	}
	k.timely(call, began, limit+slack)
	k.expect(call, err, sqllock.ErrNotAcquired, sqllock.ErrDatabase, sqllock.ErrCapacity)
	if errors.Is(err, sqllock.ErrDatabase) && k.world.isSettled() {
		k.world.violated("error", "%s: %s, while all is well: %v", k.name, call, err)
	}
}

// hold works under a lease, and unlocks it.
func (k *worker) hold(lease *sqllock.Lease, minHold bool) {
	if k.isDead() {
		_ = lease.Unlock(context.Background())
		return
	}
	w := k.world
	c := w.witness.acquired(k.process, lease)
	k.note("holds %s as no. %d, token %d", c.key, c.number, c.token)
	k.work(lease.Context(), c)
	w.witness.released(c)
	if minHold {
		w.witness.keeps(c.holder)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	if k.random.chance(0.1) {
		cancel() // Unlock does its work all the same
	}
	deadline := lease.Deadline()
	began := time.Now()
	err := lease.Unlock(ctx)
	k.note("Unlock %s no. %d: %v", c.key, c.number, err)
	if prolonged := lease.Deadline(); prolonged.After(deadline) {
		deadline = prolonged // by a renewal that was under way
	}
	k.timely("Unlock", began, max(0, deadline.Sub(began))+slack)
	k.unlocked(c, err)
}

// unlocked checks the result of a release.
func (k *worker) unlocked(c *claim, err error) {
	k.expect("Unlock "+c.key, err, sqllock.ErrLockLost, sqllock.ErrDatabase, sqllock.ErrPinned)
	k.noteLost(c, err)
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
		time.Sleep(k.random.upTo(2 * k.plan.Registry.TTL)) // it looks at nothing meanwhile
	}
	for range 1 + k.random.intN(3) {
		if !pauseUnder(ctx, k.random.around(w.plan.Hold)) {
			return
		}
		switch k.random.intN(8) {
		case 0:
			began, deadline := time.Now(), c.lease.Deadline()
			err := c.lease.Renew(ctx)
			k.renewed(ctx, "Renew", began, deadline, err)
		case 1:
			if w.plan.Layout == dialect.Spring7 {
				began, deadline := time.Now(), c.lease.Deadline()
				err := c.lease.RenewFor(ctx, k.plan.Registry.TTL*longerTTL)
				k.renewed(ctx, "RenewFor", began, deadline, err)
			}
		case 2:
			k.reenter(ctx, c)
		case 3:
			k.guard(ctx, c)
		}
	}
}

// pauseUnder waits for d. It returns false if ctx ends.
func pauseUnder(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}

func (k *worker) renewed(ctx context.Context, call string, began, deadline time.Time, err error) {
	k.note("%s: %v", call, err)
	k.timely(call, began, max(0, deadline.Sub(began))+slack)
	allowed := []error{sqllock.ErrDatabase, sqllock.ErrLockLost, sqllock.ErrPinned}
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return
	}
	k.expect(call, err, allowed...)
}

// reenter locks the key once more under its own lease.
func (k *worker) reenter(ctx context.Context, c *claim) {
	inner, err := k.registry.Lock(ctx, c.key)
	k.note("enter %s again: %v", c.key, err)
	if err != nil {
		if ctx.Err() == nil {
			k.expect("Lock again", err, sqllock.ErrDatabase, sqllock.ErrLockLost, sqllock.ErrCapacity, sqllock.ErrPinned)
		}
		return
	}
	if inner.Token() != c.token || inner.Holder() != c.holder {
		k.world.violated("re-entry", "%s entered %v with token %d as %s", k.name, c, inner.Token(), k.world.alias(inner.Holder()))
	}
	pauseUnder(ctx, k.random.around(k.world.plan.Hold)/4)
	k.expect("Unlock again", inner.Unlock(context.Background()), sqllock.ErrLockLost, sqllock.ErrDatabase)
}

// guard writes in a guarded transaction. Where things may go wrong, it may outlast the lease,
// or still be open when the lock is unlocked.
func (k *worker) guard(ctx context.Context, c *claim) {
	reckless := !k.world.isCalm() && k.random.chance(0.4)
	txCtx := ctx
	if reckless {
		txCtx = context.WithoutCancel(ctx)
	}
	tx, err := k.app.BeginTxx(txCtx, nil)
	if err != nil {
		return
	}
	if err := c.lease.Guard(ctx, tx); err != nil {
		_ = tx.Rollback()
		k.note("Guard %s no. %d: %v", c.key, c.number, err)
		if ctx.Err() == nil {
			k.expect("Guard", err, sqllock.ErrLockLost, sqllock.ErrDatabase)
		}
		return
	}
	commit := func() {
		if k.write(txCtx, tx, c) != nil {
			_ = tx.Rollback()
			return
		}
		err := tx.Commit()
		k.note("commit a guarded transaction of %s no. %d: %v", c.key, c.number, err)
	}
	switch {
	case !reckless:
		commit()
	case k.random.chance(0.5): // it outlasts the lease
		time.Sleep(k.random.upTo(2 * k.plan.Registry.TTL))
		commit()
	default: // it is open when the lock is unlocked
		k.workers.Go(commit)
	}
}

// write writes the number of a claim, and takes its time.
func (k *worker) write(ctx context.Context, tx *sqlx.Tx, c *claim) error {
	_, err := tx.ExecContext(ctx, "UPDATE guarded SET number = ? WHERE key = ?", c.number, c.key)
	if err != nil {
		return err
	}
	if !pauseUnder(ctx, k.writingTime()) {
		return ctx.Err()
	}
	return nil
}

// writingTime is how long a guarded transaction lasts. SQLite has one writer at a time, so all
// others wait meanwhile: when nothing is to go wrong it must be short, for all to have their
// turn within a lease.
func (k *worker) writingTime() time.Duration {
	w := k.world
	switch {
	case w.isCalm():
		return k.random.upTo(w.plan.shortestTTL() / 40)
	case k.random.chance(0.1):
		return k.random.upTo(k.plan.Registry.TTL * 3 / 2)
	default:
		return k.random.upTo(k.plan.Registry.TTL / 4)
	}
}

// errOwn is an error of the function that runs under a lock.
var errOwn = errors.New("simulated: the work has failed")

// isOwn reports whether an error is of the function that runs under the lock, or of the end of
// the caller's context.
func isOwn(ctx context.Context, err error) bool {
	return errors.Is(err, errOwn) || ctx.Err() != nil && errors.Is(err, ctx.Err())
}

func (k *worker) executeLocked(ctx context.Context, key string) {
	began := time.Now()
	var worked time.Duration
	var claimed *claim
	err := k.registry.ExecuteLockedFor(ctx, key, k.random.upTo(longestWait), func(ctx context.Context) error {
		from := time.Now()
		defer func() { worked = time.Since(from) }()
		return k.under(ctx, key, func(ctx context.Context, c *claim) error {
			claimed = c
			k.work(ctx, c)
			if k.random.chance(0.1) {
				return errOwn
			}
			return nil
		})
	})
	k.note("ExecuteLockedFor %s: %v", key, err)
	k.noteLost(claimed, err)
	k.timely("ExecuteLockedFor", began, longestWait+worked+k.world.plan.LongestTTL()+slack)
	if !isOwn(ctx, err) {
		k.expect("ExecuteLockedFor "+key, err, sqllock.ErrNotAcquired, sqllock.ErrDatabase, sqllock.ErrCapacity, sqllock.ErrLockLost, sqllock.ErrPinned)
	}
}

// under runs fn with the claim of the lease that ctx carries. errOwn is returned if there is
// no lease, because it was lost at once.
func (k *worker) under(ctx context.Context, key string, fn func(context.Context, *claim) error) error {
	lease, err := k.registry.LeaseFrom(ctx, key)
	if err != nil || k.isDead() {
		k.expect("LeaseFrom", err, sqllock.ErrLockLost)
		return errOwn
	}
	c := k.world.witness.acquired(k.process, lease)
	k.note("holds %s as no. %d, token %d", c.key, c.number, c.token)
	defer k.world.witness.released(c)
	return fn(ctx, c)
}

func (k *worker) executeLockedTx(ctx context.Context, key string) {
	var number int64
	var claimed *claim
	err := k.registry.ExecuteLockedTxFor(ctx, key, k.random.upTo(longestWait), k.app, nil, func(ctx context.Context, tx *sqlx.Tx) error {
		return k.under(ctx, key, func(ctx context.Context, c *claim) error {
			claimed = c
			if err := k.write(ctx, tx, c); err != nil {
				return errors.Join(errOwn, err)
			}
			number = c.number
			if k.random.chance(0.1) {
				return errOwn
			}
			return nil
		})
	})
	k.note("ExecuteLockedTxFor %s no. %d: %v", key, number, err)
	if ctx := claimed.context(); ctx != nil && errors.Is(context.Cause(ctx), sqllock.ErrLockLost) {
		k.world.witness.keeps(claimed.holder) // once it has committed, a loss is no error
	}
	if k.isDead() {
		return
	}
	if !isOwn(ctx, err) {
		k.expect("ExecuteLockedTxFor "+key, err, sqllock.ErrNotAcquired, sqllock.ErrDatabase, sqllock.ErrCapacity, sqllock.ErrLockLost, sqllock.ErrPinned)
	}
	written := number != 0 && k.world.witness.wrote(key, number)
	if err == nil && !written || err != nil && written && !errors.Is(err, sqllock.ErrDatabase) {
		k.world.violated("outcome", "%s: ExecuteLockedTxFor %s no. %d returned %v, and committed is %v", k.name, key, number, err, written)
	}
}

// tidyUp does what an application does from time to time.
func (k *worker) tidyUp(ctx context.Context, key string) {
	w := k.world
	switch k.random.intN(4) {
	case 0:
		_, err := k.registry.ExpireUnusedOlderThan(k.random.upTo(time.Minute))
		k.expect("ExpireUnusedOlderThan", err)
	case 1:
		_, err := k.registry.DeleteExpired(ctx)
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
