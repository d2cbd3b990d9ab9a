package simulation

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
)

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
	deadline := c.lease.Deadline()
	call := k.begin(ctx, "Guard")
	err = c.lease.Guard(ctx, tx)
	call.returned(k.longestGuard(c, call.began, deadline))
	if err != nil {
		_ = tx.Rollback()
		k.note("Guard %s no. %d: %v", c.name(), c.number, err)
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
		k.note("commit a guarded transaction of %s no. %d: %v", c.name(), c.number, err)
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

// longestGuard is how long a Guard that began then may take, with the Deadline that the lease had. Where
// the lease has been renewed since, Guard may have done it itself: that takes up to a fifteenth of the TTL, and
// what limits Guard is the Deadline after it.
func (k *worker) longestGuard(c *claim, began, deadline time.Time) time.Duration {
	if c.lease.Deadline().After(deadline) {
		ttl := k.world.plan.LongestTTL()
		return max(deadline.Sub(began), ttl+ttl/15)
	}
	return max(0, deadline.Sub(began))
}

// write writes the number of a claim, and takes its time.
func (k *worker) write(ctx context.Context, tx sqllock.Tx, c *claim) error {
	for _, key := range c.writes() {
		if _, err := tx.ExecContext(ctx, "UPDATE guarded SET number = ? WHERE key = ?", c.number, key); err != nil {
			return err
		}
	}
	if !k.sleep(ctx, k.writingTime()) {
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
