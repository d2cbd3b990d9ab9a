package locktable

import (
	"context"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/stmt"
)

// Keep leaves the row for a minimum hold, to expire after d: it carries another holder then, so that nothing that
// the claim's holder has sent before can shorten or lengthen it. [clientid.IsKept] tells that holder.
// Keep returns false if the row is not held. TTL is that of the clients that will judge the row,
// which matters in the four-column layout.
func (r *releases) Keep(ctx context.Context, c Claim, d time.Duration) (bool, error) {
	v := stmt.Values{Claim: c, KeepFor: d, Next: r.ids.NextKept()}
	return dbcall.CallInTime(ctx, r.server, keeping, c.TTL, func(ctx context.Context) (bool, error) {
		o := r.keepOne(ctx, v)
		return o.Err == nil && o.Value, o.Err
	}, nil)
}

// KeepAll is [releases.Keep] for at most [MaxRenewals] rows, by one statement. It waits for none of them,
// and returns in the order of claims which it has kept: one that it has not is pinned, or not held. In
// the four-column layout all have the same TTL.
func (r *releases) KeepAll(ctx context.Context, claims []Claim, d time.Duration) ([]bool, error) {
	v := stmt.Together(stmt.Flattened(claims))
	v.KeepFor, v.Next = d, r.ids.NextKept()
	return dbcall.CallInTime(ctx, r.server, keeping, v.TTL, func(ctx context.Context) ([]bool, error) {
		rows, _, err := r.keepMany(ctx, v)
		kept := make([]bool, len(claims))
		for i, c := range claims {
			kept[i] = !slices.ContainsFunc(c.Each(), func(one Claim) bool { return !rows[one.ID()] })
		}
		return kept, err
	}, nil)
}

// keepOne leaves one row to expire, or those of a joint claim, also if some of them are lost.
func (r *releases) keepOne(ctx context.Context, v stmt.Values) (o batch.Outcome[bool]) {
	if v.IsJoint() {
		return r.changeJoint(ctx, v, r.keepMany, func(ctx context.Context, one Claim) batch.Outcome[bool] {
			v.Claim = one
			return r.keepOne(ctx, v)
		})
	}
	done, err := r.changeOne(ctx, r.pool.Try(), r.statements.Keep, v)
	o.Value, o.Err = done.n > 0, err
	if err == nil && !o.Value && done.resent {
		v.Holder = v.Next // was the row left to it the first time?
		o.Value, o.Err = r.isHeld(ctx, v.Claim)
	}
	return o
}

// keepMany leaves those of v's rows to expire that are not pinned, by one statement, and returns them.
func (r *releases) keepMany(ctx context.Context, v stmt.Values) (kept map[stmt.RowID]bool, resent bool, err error) {
	rows, resent, err := r.changeMany(ctx, r.pool.Try(), r.statements.KeepAll, v)
	if err == nil && len(rows) < len(v.Rows) { // which were left to it before, by a statement that is sent again?
		left := v
		left.Rows = slices.Clone(v.Rows)
		for i := range left.Rows {
			left.Rows[i].Holder = v.Next
		}
		rows, err = r.selectHeld(ctx, left)
	}
	lockKeys := make(map[string]bool, len(rows)) // their holder may be the next one
	for row := range rows {
		lockKeys[row.LockKey] = true
	}
	kept = make(map[stmt.RowID]bool, len(rows))
	for _, c := range v.Rows {
		if lockKeys[c.LockKey] {
			kept[c.ID()] = true
		}
	}
	return kept, resent, err
}
