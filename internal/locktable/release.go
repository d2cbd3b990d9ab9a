package locktable

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/clientid"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/stmt"
)

// releases are the ways in which a lease ends: its row is deleted, or parked, or left to expire.
type releases struct {
	*database

	ids     *clientid.Maker
	deletes batched[bool]
	parks   batched[bool]
	parked  *parked
	bell    *bells // nil for none
}

// Release deletes the row that carries the claim's holder, expired or not. It returns false if there is none. If a
// connection broke before the answer came, Release sends the statement again, and then returns true also for a row
// that is not there: it may have deleted it before. It waits for a row that is pinned for three seconds at most.
func (r *releases) Release(ctx context.Context, c Claim) (bool, error) {
	o := r.release(ctx, c)
	return o.Err == nil && (o.Value || o.Unknown), o.Err
}

// release returns whether it has deleted the row.
func (r *releases) release(ctx context.Context, c Claim) batch.Outcome[bool] {
	verb := &r.deletes
	var stale []Claim // parked rows that c has taken over: they are gone with its own
	if c.Busy && r.mayPark(c) {
		verb = &r.parks
	} else if r.parked.n.Load() > 0 {
		stale = r.parked.claimsOf(c.LockKeys())
	}
	unknown := false
	for retry := (dbcall.Retry{Policy: releasing, Server: r.server, Began: time.Now()}); ; {
		o := verb.do(ctx, c)
		unknown = unknown || o.Unknown
		if o.Err != nil {
			if retry.Again(ctx, o.Err) {
				continue
			}
			o.Err = retry.Explain(ctx, o.Err)
		}
		if o.Err == nil && o.Value {
			for _, one := range stale {
				r.parked.forget(one.LockKey, one.Holder)
			}
		}
		o.Unknown = unknown
		return o
	}
}

// releaseOne deletes one row, or those of a joint claim.
func (r *releases) releaseOne(ctx context.Context, c Claim) (o batch.Outcome[bool]) {
	if len(c.More) > 0 {
		o = r.changeJoint(ctx, stmt.Values{Claim: c}, r.deleteMany, r.releaseOne)
		if r.bell != nil && o.Value {
			r.bell.ringAll(c)
		}
		return o
	}
	name, resent, doubt := "", false, error(nil)
	if r.bell != nil && r.bell.Rings() {
		name = r.bell.nameOf(c.LockKey)
		alone, why, err := r.releaseUnheard(ctx, c, name)
		if alone.n > 0 || err != nil {
			return batch.Outcome[bool]{Value: alone.n > 0, Err: err, Unknown: alone.resent}
		}
		resent, doubt = alone.resent, why
	}
	done, err := r.changeOne(ctx, r.pool.Try(), r.statements.Delete, stmt.Values{Claim: c})
	if doubt != nil && err == nil {
		r.bell.Mute(doubt)
	}
	if done.n > 0 && name != "" && r.bell.Rings() {
		r.bell.Ring(true, name)
	}
	return batch.Outcome[bool]{Value: done.n > 0, Err: err, Unknown: done.resent || resent}
}

// releaseMany deletes the rows of a batch. It leaves out those that it did not find, or found pinned.
func (r *releases) releaseMany(ctx context.Context, claims []Claim, outcomes []batch.Outcome[bool]) {
	gone, resent, err := r.deleteMany(ctx, stmt.Together(claims))
	r.settle(ctx, claims, outcomes, gone, resent, err)
}

// settle says what has become of the rows of a batch, of which a statement has released those that are gone.
func (r *releases) settle(ctx context.Context, claims []Claim, outcomes []batch.Outcome[bool], gone map[stmt.RowID]bool, resent bool, err error) {
	unknown := resent || err != nil && !r.server.IsUnapplied(err) // then it may have been applied
	var released []Claim
	for i, c := range claims {
		o := &outcomes[i]
		o.Value, o.Unknown = err == nil && gone[c.ID()], unknown
		switch {
		case o.Value:
			released = append(released, c)
		case r.server.IsRace(err):
			o.Err = err
		case err != nil && ctx.Err() != nil:
			o.Err = err // no time is left to send it alone
		default:
			o.Err = errRetryAlone
		}
	}
	if r.bell != nil && len(released) > 0 { // the others ring when they are released alone
		r.bell.ringAll(released...)
	}
}

// MaxReleases returns how many calls of [releases.Release] at the same time are of use: as many as the batches take, or
// a few if batching is disabled.
func (r *releases) MaxReleases() int {
	if r.deletes.batcher == nil {
		return maxLanes
	}
	return maxLanes * maxBatch
}
