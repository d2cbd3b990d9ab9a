package simulation

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
)

// errOwn is an error of the function that runs under a lock.
var errOwn = errors.New("simulated: the work has failed")

// An execution is a call that runs a function under a lock.
type execution struct {
	*attempt

	worker *worker
	claim  *claim    // nil until the function runs
	from   time.Time // when the function began, or zero
	to     time.Time // when it returned
}

func (k *worker) execution(ctx context.Context, name string, keys ...string) *execution {
	return &execution{attempt: k.attempt(ctx, name+" "+nameOf(keys), keys, true), worker: k}
}

// run runs fn with the claim of the lease that ctx carries. It returns errOwn if there is
// no lease, because it was lost at once.
func (e *execution) run(ctx context.Context, fn func(*claim) error) error {
	k := e.worker
	e.from = time.Now()
	defer func() { e.to = time.Now() }()
	e.end(nil)
	lease, err := e.lease(ctx)
	if err != nil || k.isDead() {
		k.expect("LeaseFrom", err, sqllock.ErrLockLost)
		return errOwn
	}
	e.claim = k.world.witness.acquired(k.process, lease)
	k.note("holds %s as no. %d, token %d", e.claim.name(), e.claim.number, e.claim.token)
	defer k.world.witness.releases(e.claim)
	return fn(e.claim)
}

// lease returns the lease under which the function runs. Which seat it has is random.
func (e *execution) lease(ctx context.Context) (*sqllock.Lease, error) {
	if !e.seats {
		return e.worker.registry.LeaseFrom(ctx, e.keys[0])
	}
	if leases := e.worker.registry.LeasesFrom(ctx); len(leases) > 0 {
		return leases[0], nil
	}
	return nil, sqllock.ErrLockLost
}

// returned checks how the call has ended. It may take for limit until the function begins, and the
// rest of the lease after that. If the function did not run, release is how long a release may
// have taken.
func (e *execution) returned(limit, release time.Duration, err error) {
	k := e.worker
	e.end(err)
	k.noteLost(e.claim, err)
	limit = e.within(limit) + k.handedOverLate() + slack
	switch {
	case e.from.IsZero():
		k.timely(e.name, e.began, limit+release)
	case e.claim != nil:
		k.world.witness.released(e.claim)
		if took := e.from.Sub(e.began); took > limit && !k.isDead() {
			k.world.violated("late return", "%s: %s began its work after %v, limit %v", k.name, e.name, took, limit)
		}
		k.timely(e.name+", after its work", e.to, max(0, e.claim.lease.Deadline().Sub(e.to))+slack)
	}
	own := errors.Is(err, errOwn) || e.ctx.Err() != nil && errors.Is(err, e.ctx.Err())
	if !own {
		k.expectSome(e.name, err, sqllock.ErrNotAcquired, sqllock.ErrDatabase, sqllock.ErrCapacity, sqllock.ErrLockLost, sqllock.ErrPinned)
	}
	e.checkOwnRow(err)
}

func (k *worker) executeLocked(ctx context.Context, keys ...string) {
	lock, err := k.registry.ObtainAll(keys...)
	if err != nil {
		k.expect("ObtainAll", err, sqllock.ErrCapacity)
		return
	}
	wait := k.random.upTo(longestWait)
	e := k.execution(ctx, "ExecuteLockedFor", keys...)
	err = lock.ExecuteLockedFor(ctx, wait, func(ctx context.Context) error {
		return e.run(ctx, func(c *claim) error {
			k.work(ctx, c)
			if k.random.chance(0.1) {
				return errOwn
			}
			return nil
		})
	})
	k.note("%s: %v", e.name, err)
	e.returned(wait, 0, err)
}

func (k *worker) executeLockedTx(ctx context.Context, keys ...string) {
	lock, err := k.registry.ObtainAll(keys...)
	if err != nil {
		k.expect("ObtainAll", err, sqllock.ErrCapacity)
		return
	}
	var number int64
	wait := k.random.upTo(longestWait)
	e := k.execution(ctx, "ExecuteLockedTxFor", keys...)
	err = lock.ExecuteLockedTxFor(ctx, wait, k.app.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
		return e.run(ctx, func(c *claim) error {
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
	k.note("%s no. %d: %v", e.name, number, err)
	if e.claim != nil && errors.Is(context.Cause(e.claim.lease.Context()), sqllock.ErrLockLost) {
		k.world.witness.keeps(e.claim.holder) // once it has committed, a loss is no error
	}
	if e.claim == nil && errors.Is(err, sqllock.ErrLockLost) {
		k.world.witness.keepsOwn(keys, k.id) // lost before Guard: only the row says by which holder
	}
	lease := k.world.plan.LongestTTL() // BEGIN and Guard come first, and may fail
	e.returned(wait+k.world.longestStatements()+lease, lease, err)
	if k.isDead() {
		return
	}
	written := number != 0 && k.world.witness.wrote(number)
	if err == nil && !written || err != nil && written && !errors.Is(err, sqllock.ErrDatabase) {
		k.world.violated("outcome", "%s: %s no. %d returned %v, and committed is %v", k.name, e.name, number, err, written)
	}
}
