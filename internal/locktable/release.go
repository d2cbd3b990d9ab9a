package locktable

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/batch"
)

// Release deletes the row that carries the claim's holder, expired or not. It returns false
// if there is none. If a connection broke before the answer came, Release sends the statement
// again, and then returns true also for a row that is not there: it may have deleted it
// before. It waits for a row that is pinned for three seconds at most.
func (t *Table) Release(ctx context.Context, c Claim) (bool, error) {
	got, err := t.release(ctx, c)
	return err == nil && (got.value || got.unknown), err
}

// release returns whether it has deleted the row.
func (t *Table) release(ctx context.Context, c Claim) (got effect[bool], err error) {
	_, err = call(ctx, t.errors, releasing, func(ctx context.Context) (bool, error) {
		one, err := t.releases.do(ctx, c)
		got = effect[bool]{value: one.value, unknown: got.unknown || one.unknown}
		return one.value, err
	})
	return got, err
}

// releaseOne deletes one row.
func (t *Table) releaseOne(ctx context.Context, c Claim) (got effect[bool], err error) {
	if c.IsJoint() {
		return t.releaseJoint(ctx, c)
	}
	got.unknown, err = t.pool.send(ctx, func(db executor) error {
		n, err := exec(ctx, db, t.statements.release, values{Claim: c})
		got.value = n > 0
		return err
	})
	if err == nil && !got.value {
		again, failed := t.execCurrent(ctx, t.statements.release, values{Claim: c})
		got.value, got.unknown, err = again.n > 0, got.unknown || again.resent, failed
	}
	return got, err
}

// releaseMany deletes the rows of a batch. It leaves out those that it did not find, or found
// pinned.
func (t *Table) releaseMany(ctx context.Context, claims []Claim, outcomes []batch.Outcome[effect[bool]]) {
	gone, resent, err := t.deleteRows(ctx, together(claims))
	unknown := resent || err != nil && !t.errors.isAnswer(err) // then it may have been applied
	for i, c := range claims {
		o := &outcomes[i]
		o.Value = effect[bool]{value: err == nil && gone[c.id()], unknown: unknown}
		switch {
		case o.Value.value:
		case t.errors.isRace(err):
			o.Err = err
		case err != nil && ctx.Err() != nil:
			o.Err = err // no time is left to send it alone
		default:
			o.Err = errRetryAlone
		}
	}
}

// deleteRows deletes rows that are not pinned by one statement, and returns them.
func (t *Table) deleteRows(ctx context.Context, v values) (gone map[rowID]bool, resent bool, err error) {
	if !t.dialect.Returning {
		gone, err = t.pickAnd(ctx, t.statements.releaseAll, v)
		return gone, false, err
	}
	resent, err = t.pool.send(ctx, func(db executor) (err error) {
		gone, err = selectRowIDs(ctx, db, t.statements.releaseAll, v)
		return err
	})
	return gone, resent, err
}

// pickAnd runs s, a statement for many rows, for those of v's that are not pinned, and
// returns them.
func (t *Table) pickAnd(ctx context.Context, s statement, v values) (picked map[rowID]bool, err error) {
	err = t.pool.inTransaction(ctx, sql.LevelReadCommitted, func(tx sqlx.ExtContext) error {
		found, err := selectRowIDs(ctx, tx, t.statements.pick, v)
		if err != nil {
			return err
		}
		some := v.only(found)
		picked = make(map[rowID]bool, len(some.rows))
		for _, c := range some.rows {
			picked[c.id()] = true
		}
		if len(picked) > 0 {
			_, err = exec(ctx, tx, s, some)
		}
		return err
	})
	return picked, err
}

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

func (t *Table) keep(ctx context.Context, v values) (kept bool, err error) {
	resent, err := t.pool.send(ctx, func(db executor) error {
		n, err := exec(ctx, db, t.statements.keep, v)
		kept = n > 0
		return err
	})
	if err != nil || kept {
		return kept, err
	}
	got, err := t.execCurrent(ctx, t.statements.keep, v)
	if err != nil || got.n > 0 || !resent && !got.resent {
		return got.n > 0, err
	}
	v.Holder = v.next // was the row left to it the first time?
	return t.isHeld(ctx, v.Claim)
}

// releaseJoint deletes all rows of c by one statement, and those that it found pinned one by one.
func (t *Table) releaseJoint(ctx context.Context, c Claim) (got effect[bool], err error) {
	claims := c.each()
	gone, resent, err := t.deleteRows(ctx, together(claims))
	if err != nil {
		got.unknown = resent || !t.errors.isAnswer(err)
		return got, err
	}
	got = effect[bool]{value: len(gone) == len(claims), unknown: resent}
	if got.value {
		return got, nil
	}
	all, unknown, err := t.releaseLeft(ctx, claims, gone)
	got.value = all
	got.unknown = resent || unknown || err != nil // another try would not find the rows that are gone
	return got, err
}

// releaseLeft deletes the rows of claims that are not gone, one by one. It reports whether it has found
// them all, and whether a statement may have been applied without an answer.
func (t *Table) releaseLeft(ctx context.Context, claims []Claim, gone map[rowID]bool) (all, unknown bool, err error) {
	left, err := t.left(ctx, claims, gone)
	if err != nil {
		return false, false, err
	}
	all = len(left)+len(gone) == len(claims)
	for _, one := range left {
		deleted, err := t.releaseOne(ctx, one)
		all, unknown = all && deleted.value, unknown || deleted.unknown
		if err != nil {
			return false, unknown, err
		}
	}
	return all, unknown, nil
}

// left returns those of claims that are not done and whose rows are there: a statement that skips pinned
// rows has left them.
func (t *Table) left(ctx context.Context, claims []Claim, done map[rowID]bool) (left []Claim, err error) {
	if len(done) == len(claims) {
		return nil, nil
	}
	rows, err := t.peekCurrent(ctx, together(claims))
	for _, one := range claims {
		if !done[one.id()] && rows[one.LockKey].Holder == one.Holder {
			left = append(left, one)
		}
	}
	return left, err
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
	var rows map[rowID]bool
	if !t.dialect.Returning {
		rows, err = t.pickAnd(ctx, t.statements.keepAll, v)
	} else {
		var resent bool
		resent, err = t.pool.send(ctx, func(db executor) (err error) {
			rows, err = selectRowIDs(ctx, db, t.statements.keepAll, v)
			return err
		})
		if err == nil && resent { // which were left to it the first time?
			v.rows = slices.Clone(v.rows)
			for i := range v.rows {
				v.rows[i].Holder = v.next
			}
			rows, err = t.selectRowIDs(ctx, t.statements.heldAll, v)
		}
	}
	kept = make(map[string]bool, len(rows))
	for row := range rows {
		kept[row.lockKey] = true
	}
	return kept, err
}
