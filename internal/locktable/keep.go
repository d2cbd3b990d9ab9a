package locktable

import (
	"context"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/batch"
)

// Keep leaves the row to expire after d: it carries another holder then, so that nothing that
// the claim's holder has sent before can shorten or lengthen it. [dialect.IsKept] tells that holder.
// Keep returns false if the row is not held. TTL is that of the clients that will judge the row,
// which matters in the four-column layout.
func (t *Table) Keep(ctx context.Context, c Claim, d time.Duration) (bool, error) {
	v := values{Claim: c, keepFor: d, next: t.holders.nextKept()}
	return callAlone(ctx, t, keeping, c.TTL, func(ctx context.Context) (bool, error) {
		o := t.keepOne(ctx, v)
		return o.Err == nil && o.Value, o.Err
	}, nil)
}

// KeepAll is [Table.Keep] for at most [MaxRenewals] rows, by one statement. It waits for none of them,
// and returns in the order of claims which it has kept: one that it has not is pinned, or not held. In
// the four-column layout all have the same TTL.
func (t *Table) KeepAll(ctx context.Context, claims []Claim, d time.Duration) ([]bool, error) {
	v := together(flattened(claims))
	v.keepFor, v.next = d, t.holders.nextKept()
	return callAlone(ctx, t, keeping, v.TTL, func(ctx context.Context) ([]bool, error) {
		rows, _, err := t.keepMany(ctx, v)
		kept := make([]bool, len(claims))
		for i, c := range claims {
			kept[i] = !slices.ContainsFunc(c.each(), func(one Claim) bool { return !rows[one.id()] })
		}
		return kept, err
	}, nil)
}

// keepOne leaves one row to expire, or those of a joint claim, also if some of them are lost.
func (t *Table) keepOne(ctx context.Context, v values) (o batch.Outcome[bool]) {
	if v.IsJoint() {
		return t.changeJoint(ctx, v, t.keepMany, func(ctx context.Context, one Claim) batch.Outcome[bool] {
			v.Claim = one
			return t.keepOne(ctx, v)
		})
	}
	done, err := t.changeOne(ctx, t.pool.Try(), t.statements.keep, v)
	o.Value, o.Err = done.n > 0, err
	if err == nil && !o.Value && done.resent {
		v.Holder = v.next // was the row left to it the first time?
		o.Value, o.Err = t.isHeld(ctx, v.Claim)
	}
	return o
}

// keepMany leaves those of v's rows to expire that are not pinned, by one statement, and returns them.
func (t *Table) keepMany(ctx context.Context, v values) (kept map[rowID]bool, resent bool, err error) {
	rows, resent, err := t.changeMany(ctx, t.pool.Try(), t.statements.keepAll, v)
	if err == nil && len(rows) < len(v.rows) { // which were left to it before, by a statement that is sent again?
		left := v
		left.rows = slices.Clone(v.rows)
		for i := range left.rows {
			left.rows[i].Holder = v.next
		}
		rows, err = t.selectHeld(ctx, left)
	}
	lockKeys := make(map[string]bool, len(rows)) // their holder may be the next one
	for row := range rows {
		lockKeys[row.lockKey] = true
	}
	kept = make(map[rowID]bool, len(rows))
	for _, c := range v.rows {
		if lockKeys[c.LockKey] {
			kept[c.id()] = true
		}
	}
	return kept, resent, err
}
