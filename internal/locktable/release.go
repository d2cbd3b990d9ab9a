package locktable

import (
	"context"
	"database/sql"
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
		got = effect[bool]{one.value, got.unknown || one.unknown}
		return one.value, err
	})
	return got, err
}

// releaseOne deletes one row.
func (t *Table) releaseOne(ctx context.Context, c Claim) (got effect[bool], err error) {
	if c.IsJoint() {
		return t.releaseJoint(ctx, c)
	}
	got.unknown, err = t.pool.once(ctx, t.statements.release, values{Claim: c}, func(db executor, v values) error {
		n, err := exec(ctx, db, t.statements.release, v)
		got.value = n > 0
		return err
	})
	return got, err
}

// releaseMany deletes the rows of a batch. It leaves out those that it did not find, or found
// pinned.
func (t *Table) releaseMany(ctx context.Context, claims []Claim, outcomes []batch.Outcome[effect[bool]]) {
	gone, resent, err := t.deleteRows(ctx, together(claims))
	unknown := resent || err != nil && !t.errors.isRefusal(err) // then it may have been applied
	for i, c := range claims {
		o := &outcomes[i]
		o.Value = effect[bool]{err == nil && gone[c.id()], unknown}
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
	resent, err = t.pool.once(ctx, t.statements.releaseAll, v, func(db executor, v values) (err error) {
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
	return callAlone(ctx, t.errors, keeping, c.TTL, func(ctx context.Context) (bool, error) { return t.keepAll(ctx, v) }, nil)
}

func (t *Table) keep(ctx context.Context, v values) (kept bool, err error) {
	resent, err := t.pool.once(ctx, t.statements.keep, v, func(db executor, v values) error {
		n, err := exec(ctx, db, t.statements.keep, v)
		kept = n > 0
		return err
	})
	if err != nil || kept || !resent {
		return kept, err
	}
	v.Holder = v.next // was the row left to it the first time?
	return t.isHeld(ctx, v.Claim)
}

// releaseJoint deletes all rows of c by one statement, and those that it found pinned one by one.
func (t *Table) releaseJoint(ctx context.Context, c Claim) (got effect[bool], err error) {
	claims := c.each()
	gone, resent, err := t.deleteRows(ctx, together(claims))
	if err != nil {
		got.unknown = resent || !t.errors.isRefusal(err)
		return got, err
	}
	got = effect[bool]{value: len(gone) == len(claims), unknown: resent}
	if got.value {
		return got, nil
	}
	all, unknown, err := t.releaseLeft(ctx, c, gone)
	got.value = all
	got.unknown = resent || unknown || err != nil // another try would not find the rows that are gone
	return got, err
}

// releaseLeft deletes the rows of c that are not gone, one by one. It reports whether it has found them
// all, and whether a statement may have been applied without an answer.
func (t *Table) releaseLeft(ctx context.Context, c Claim, gone map[rowID]bool) (all, unknown bool, err error) {
	rows, err := t.peekMany(ctx, values{Claim: c, keys: c.lockKeys()})
	if err != nil {
		return false, false, err
	}
	all = true
	for _, one := range c.each() {
		switch {
		case gone[one.id()]:
		case rows[one.LockKey].Holder != one.Holder: // it need not be looked for
			all = false
		default:
			deleted, err := t.releaseOne(ctx, one)
			all, unknown = all && deleted.value, unknown || deleted.unknown
			if err != nil {
				return false, unknown, err
			}
		}
	}
	return all, unknown, nil
}

// keepAll leaves the rows of v's claim to expire, one by one, also if some of them are lost.
func (t *Table) keepAll(ctx context.Context, v values) (kept bool, err error) {
	kept = true
	for _, one := range v.each() {
		v.Claim = one
		keptOne, err := t.keep(ctx, v)
		if err != nil {
			return false, err
		}
		kept = kept && keptOne
	}
	return kept, nil
}
