package locktable

import (
	"context"
	"slices"
	"time"
)

// Keep leaves the row to expire after d: it carries another holder then, so that nothing that
// the claim's holder has sent before can shorten or lengthen it. It returns false if the row is
// not held. TTL is that of the clients that will judge the row, which matters in the
// four-column layout.
func (t *Table) Keep(ctx context.Context, c Claim, d time.Duration) (bool, error) {
	v := values{Claim: c, keepFor: d, next: t.NewHolder()}
	return callAlone(ctx, t.errors, keeping, c.TTL, func(ctx context.Context) (bool, error) {
		if c.IsJoint() {
			return t.keepJoint(ctx, v)
		}
		return t.keep(ctx, v)
	}, nil)
}

// KeepAll is [Table.Keep] for at most [MaxRenewals] rows, by one statement. It waits for none of them,
// and returns in the order of claims which it has kept: one that it has not is pinned, or not held. In
// the four-column layout all have the same TTL.
func (t *Table) KeepAll(ctx context.Context, claims []Claim, d time.Duration) ([]bool, error) {
	v := together(flattened(claims))
	v.keepFor, v.next = d, t.NewHolder()
	return callAlone(ctx, t.errors, keeping, v.TTL, func(ctx context.Context) ([]bool, error) {
		rows, err := t.keepMany(ctx, v)
		kept := make([]bool, len(claims))
		for i, c := range claims {
			kept[i] = !slices.ContainsFunc(c.lockKeys(), func(lockKey string) bool { return !rows[lockKey] })
		}
		return kept, err
	}, nil)
}

// keep leaves one row to expire.
func (t *Table) keep(ctx context.Context, v values) (kept bool, err error) {
	done, err := t.changeOne(ctx, t.pool.Try(), t.statements.keep, v)
	if err != nil || done.n > 0 || !done.resent {
		return done.n > 0, err
	}
	v.Holder = v.next // was the row left to it the first time?
	return t.isHeld(ctx, v.Claim)
}

// keepJoint leaves the rows of v's claim to expire, also if some of them are lost: all by one statement, and
// those that it found pinned one by one.
func (t *Table) keepJoint(ctx context.Context, v values) (kept bool, err error) {
	v.rows = v.each()
	rows, err := t.keepMany(ctx, v)
	if err != nil {
		return false, err
	}
	done := make(map[rowID]bool, len(rows))
	for lockKey := range rows {
		done[rowID{lockKey, v.Holder}] = true
	}
	left, err := t.left(ctx, v.rows, done)
	if err != nil {
		return false, err
	}
	kept = len(left)+len(done) == len(v.rows)
	for _, one := range left {
		v.Claim = one
		keptOne, err := t.keep(ctx, v)
		if err != nil {
			return false, err
		}
		kept = kept && keptOne
	}
	return kept, nil
}

// keepMany leaves those of v's rows to expire that are not pinned, by one statement. It returns their
// LOCK_KEYs.
func (t *Table) keepMany(ctx context.Context, v values) (kept map[string]bool, err error) {
	rows, resent, err := t.changeMany(ctx, t.pool.Try(), t.statements.keepAll, v)
	if err == nil && resent { // which were left to it the first time?
		v.rows = slices.Clone(v.rows)
		for i := range v.rows {
			v.rows[i].Holder = v.next
		}
		rows, _, err = t.selectRowIDs(ctx, t.pool.Try(), t.statements.heldAll, v)
	}
	kept = make(map[string]bool, len(rows))
	for row := range rows {
		kept[row.lockKey] = true
	}
	return kept, err
}
