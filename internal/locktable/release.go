package locktable

import (
	"context"
	"database/sql"
	"maps"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/transaction"
)

// Release deletes the row that carries the claim's holder, expired or not. It returns false if there is none. If a
// connection broke before the answer came, Release sends the statement again, and then returns true also for a row
// that is not there: it may have deleted it before. It waits for a row that is pinned for three seconds at most.
func (t *Table) Release(ctx context.Context, c Claim) (bool, error) {
	o := t.release(ctx, c)
	return o.Err == nil && (o.Value || o.Unknown), o.Err
}

// release returns whether it has deleted the row.
func (t *Table) release(ctx context.Context, c Claim) batch.Outcome[bool] {
	unknown, now := false, time.Now()
	for r := (retry{policy: releasing, errors: t.errors, began: now, sent: now}); ; {
		o := t.releases.do(ctx, c)
		unknown = unknown || o.Unknown
		if o.Err != nil {
			if r.again(ctx, o.Err) {
				continue
			}
			o.Err = r.explain(ctx, o.Err)
		}
		o.Unknown = unknown
		return o
	}
}

// releaseOne deletes one row, or those of a joint claim.
func (t *Table) releaseOne(ctx context.Context, c Claim) (o batch.Outcome[bool]) {
	if len(c.More) > 0 {
		return t.changeJoint(ctx, values{Claim: c}, t.deleteMany, t.releaseOne)
	}
	done, err := t.changeOne(ctx, t.pool.Try(), t.statements.release, values{Claim: c})
	return batch.Outcome[bool]{Value: done.n > 0, Err: err, Unknown: done.resent}
}

// A change is what a statement has done to a row.
type change struct {
	n      int64 // how many rows it has changed
	row    Row   // as it was before, if a server was asked that has caught up
	resent bool  // whether it may have been sent before
}

// changeOne runs s, which changes the row of v's claim. If it has found none to change, and reads may be late, it
// runs s again where the row is there if there is one.
func (t *Table) changeOne(ctx context.Context, try transaction.Try, s statement, v values) (done change, err error) {
	text, args, err := s.bind(v)
	if err != nil {
		return done, err
	}
	for try.Next(ctx) {
		var result sql.Result
		if result, try.Err = try.Conn.ExecContext(ctx, text, args...); try.Err == nil {
			done.n, try.Err = result.RowsAffected()
		}
	}
	done.resent = try.Resent
	if try.Err != nil || done.n > 0 || !t.readsLate() {
		return done, try.Err
	}
	one := v
	one.keys = []string{v.LockKey}
	try = t.pool.TryWhole()
	for try.Next(ctx) {
		var rows map[string]Row
		rows, try.Err = t.selectCurrent(ctx, try.Conn, one)
		if done.row = rows[v.LockKey]; try.Err == nil && done.row.Holder == v.Holder {
			done.n, try.Err = exec(ctx, try.Conn, s, v)
		}
	}
	done.resent = done.resent || try.Resent
	return done, try.Err
}

// releaseMany deletes the rows of a batch. It leaves out those that it did not find, or found pinned.
func (t *Table) releaseMany(ctx context.Context, claims []Claim, outcomes []batch.Outcome[bool]) {
	gone, resent, err := t.deleteMany(ctx, together(claims))
	unknown := resent || err != nil && !t.errors.isAnswer(err) // then it may have been applied
	for i, c := range claims {
		o := &outcomes[i]
		o.Value, o.Unknown = err == nil && gone[c.id()], unknown
		switch {
		case o.Value:
		case t.errors.isRace(err):
			o.Err = err
		case err != nil && ctx.Err() != nil:
			o.Err = err // no time is left to send it alone
		default:
			o.Err = errRetryAlone
		}
	}
}

// deleteMany deletes rows that are not pinned by one statement, and returns them.
func (t *Table) deleteMany(ctx context.Context, v values) (gone map[rowID]bool, resent bool, err error) {
	return t.changeMany(ctx, t.pool.Try(), t.statements.releaseAll, v)
}

// changeMany runs s for those of v's rows that are not pinned, and returns them. After an error it has resent the
// rows that were changed before: the caller repeats all of them, and does not find these.
func (t *Table) changeMany(ctx context.Context, try transaction.Try, s many, v values) (changed map[rowID]bool, resent bool, err error) {
	err = t.inParts(len(v.rows), func(from, to int) error {
		some, again, err := t.changePart(ctx, try, s, v.part(from, to))
		resent = resent || again
		if err == nil {
			changed = merged(changed, some)
		}
		return err
	})
	return changed, resent || err != nil && len(changed) > 0, err
}

func (t *Table) changePart(ctx context.Context, try transaction.Try, s many, v values) (changed map[rowID]bool, resent bool, err error) {
	if t.statements.pick.text == "" {
		return t.selectRowIDs(ctx, try, s.statement, v)
	}
	if s.message.text != "" && len(v.rows) <= maxInMessage {
		var all bool
		all, resent, err = t.changeAll(ctx, s.message, v)
		switch {
		case err != nil:
			return nil, resent, err
		case all:
			return v.ids(), resent, nil
		}
	}
	changed, again, err := t.pickAnd(ctx, s.statement, v)
	return changed, resent || again, err
}

// maxInMessage is for how many rows a message is sent that changes all of them or none. It names each of them three
// times.
const maxInMessage = 1000

// changeAll sends s, a message that changes all of v's rows, or none if some are pinned or not held. done reports
// which.
func (t *Table) changeAll(ctx context.Context, s statement, v values) (done, resent bool, err error) {
	text, args, err := s.bindMany(t.statements.pickRow, v)
	if err != nil {
		return false, false, err
	}
	answers := 0
	try := t.pool.TryWhole()
	for try.Next(ctx) {
		done, answers = false, 0
		try.Err = readMessage(ctx, try.Conn, text, args, func(rows *sql.Rows) error {
			answers++
			return rows.Scan(&done)
		})
	}
	if try.Err == nil && answers != 1 {
		return false, try.Resent, errNoOutcome
	}
	return done, try.Resent, try.Err
}

// pickAnd runs s, a statement for many rows, for those of v's that are not pinned, and returns them.
func (t *Table) pickAnd(ctx context.Context, s statement, v values) (picked map[rowID]bool, resent bool, err error) {
	resent, err = t.pool.Run(ctx, readCommitted, func(tx *transaction.Tx) error {
		found, err := t.pick(ctx, tx, v)
		if err != nil {
			return err
		}
		some := v.only(found)
		picked = some.ids()
		if len(picked) > 0 {
			_, err = exec(ctx, tx, s, some)
		}
		return err
	})
	return picked, resent, err
}

// readCommitted is the isolation of statements for many rows.
var readCommitted = &sql.TxOptions{Isolation: sql.LevelReadCommitted}

// pick locks those of v's rows that are not pinned, and returns them.
func (t *Table) pick(ctx context.Context, tx executor, v values) (map[rowID]bool, error) {
	found := make(map[rowID]bool)
	err := dividing(len(v.rows), t.failsToPick, func(from, to int) error {
		ids, err := selectRowIDs(ctx, tx, t.statements.pick, v.part(from, to))
		maps.Copy(found, ids)
		return err
	})
	return found, err
}

// pickAny locks the rows of some keys that are not pinned, and returns their keys.
func (t *Table) pickAny(ctx context.Context, tx executor, lockKeys []string) (picked []string, err error) {
	err = dividing(len(lockKeys), t.failsToPick, func(from, to int) error {
		some, err := selectTexts(ctx, tx, t.statements.pickAny, values{keys: lockKeys[from:to]})
		picked = append(picked, some...)
		return err
	})
	return picked, err
}

// failsToPick reports whether a row is pinned, and the statement cannot skip it.
func (t *Table) failsToPick(err error) bool {
	return t.dialect.PicksOrFails && t.errors(err) == dialect.Blocked
}

// changeJoint changes the rows of a joint claim: by many, which skips those that are pinned, and then those one by
// one. The value of the outcome reports whether all were there.
func (t *Table) changeJoint(
	ctx context.Context, v values, many func(context.Context, values) (map[rowID]bool, bool, error), one func(context.Context, Claim) batch.Outcome[bool],
) batch.Outcome[bool] {
	v.rows = v.each()
	done, resent, err := many(ctx, v)
	if err != nil {
		return batch.Outcome[bool]{Err: err, Unknown: resent || !t.errors.isAnswer(err)}
	}
	left, err := t.left(ctx, v.rows, done)
	all := batch.Outcome[bool]{Value: len(left)+len(done) == len(v.rows), Err: err, Unknown: resent}
	for i := 0; i < len(left) && all.Err == nil; i++ {
		o := one(ctx, left[i])
		all.Value, all.Err, all.Unknown = all.Value && o.Value, o.Err, all.Unknown || o.Unknown
	}
	all.Unknown = all.Unknown || all.Err != nil // another try would not find the rows that are done
	return all
}

// left returns those of claims that are not done and whose rows are there: a statement that skips pinned rows has
// left them.
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
