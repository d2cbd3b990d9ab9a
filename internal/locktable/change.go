package locktable

import (
	"context"
	"database/sql"
	"maps"

	"github.com/sqllock/sqllock/internal/batch"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
)

// A change is what a statement has done to a row.
type change struct {
	n      int64 // how many rows it has changed
	row    Row   // as it was before, if a server was asked that has caught up
	resent bool  // whether it may have been sent before
}

// changeOne runs s, which changes the row of v's claim. If it has found none to change, and reads may be late, it
// runs s again where the row is there if there is one.
func (d *database) changeOne(ctx context.Context, try transaction.Try, s stmt.Statement, v stmt.Values) (done change, err error) {
	text, args, err := s.Bind(v)
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
	if try.Err != nil || done.n > 0 || !d.readsLate() {
		return done, try.Err
	}
	one := v
	one.Keys = []string{v.LockKey}
	try = d.pool.TryWhole()
	for try.Next(ctx) {
		var rows map[string]Row
		rows, try.Err = d.selectCurrent(ctx, try.Conn, one)
		if done.row = rows[v.LockKey]; try.Err == nil && done.row.Holder == v.Holder {
			done.n, try.Err = stmt.Exec(ctx, try.Conn, s, v)
		}
	}
	done.resent = done.resent || try.Resent
	return done, try.Err
}

// deleteMany deletes rows that are not pinned by one statement, and returns them.
func (d *database) deleteMany(ctx context.Context, v stmt.Values) (gone map[stmt.RowID]bool, resent bool, err error) {
	return d.changeMany(ctx, d.pool.Try(), d.statements.DeleteAll, v)
}

// changeMany runs s for those of v's rows that are not pinned, and returns them. After an error it has resent the
// rows that were changed before: the caller repeats all of them, and does not find these.
func (d *database) changeMany(ctx context.Context, try transaction.Try, s stmt.Many, v stmt.Values) (changed map[stmt.RowID]bool, resent bool, err error) {
	err = d.inParts(len(v.Rows), func(from, to int) error {
		some, again, err := d.changePart(ctx, try, s, v.Part(from, to))
		resent = resent || again
		if err == nil {
			changed = merged(changed, some)
		}
		return err
	})
	return changed, resent || err != nil && len(changed) > 0, err
}

func (d *database) changePart(ctx context.Context, try transaction.Try, s stmt.Many, v stmt.Values) (changed map[stmt.RowID]bool, resent bool, err error) {
	if d.statements.Pick.Text == "" {
		return d.selectRowIDs(ctx, try, s.Statement, v)
	}
	if s.Message.Text != "" && len(v.Rows) <= maxInMessage {
		var all bool
		all, resent, err = d.changeAll(ctx, s.Message, v)
		switch {
		case err != nil:
			return nil, resent, err
		case all:
			return v.IDs(), resent, nil
		}
	}
	changed, again, err := d.pickAnd(ctx, s.Statement, v)
	return changed, resent || again, err
}

// maxInMessage is for how many rows a message is sent that changes all of them or none. It names each of them three
// times.
const maxInMessage = 1000

// changeAll sends s, a message that changes all of v's rows, or none if some are pinned or not held. done reports
// which.
func (d *database) changeAll(ctx context.Context, s stmt.Statement, v stmt.Values) (done, resent bool, err error) {
	text, args, err := s.BindMany(d.statements.PickRow, v)
	if err != nil {
		return false, false, err
	}
	answers := 0
	try := d.pool.TryWhole()
	for try.Next(ctx) {
		done, answers = false, 0
		try.Err = stmt.ReadMessage(ctx, try.Conn, text, args, func(rows *sql.Rows) error {
			answers++
			return rows.Scan(&done)
		})
	}
	if try.Err == nil && answers != 1 {
		return false, try.Resent, stmt.ErrNoOutcome
	}
	return done, try.Resent, try.Err
}

// pickAnd runs s, a statement for many rows, for those of v's that are not pinned, and returns them.
func (d *database) pickAnd(ctx context.Context, s stmt.Statement, v stmt.Values) (picked map[stmt.RowID]bool, resent bool, err error) {
	resent, err = d.pool.Run(ctx, readCommitted, func(tx *transaction.Tx) error {
		found, err := d.pick(ctx, tx, v)
		if err != nil {
			return err
		}
		some := v.Only(found)
		picked = some.IDs()
		if len(picked) > 0 {
			_, err = stmt.Exec(ctx, tx, s, some)
		}
		return err
	})
	return picked, resent, err
}

// readCommitted is the isolation of statements for many rows.
var readCommitted = &sql.TxOptions{Isolation: sql.LevelReadCommitted}

// pick locks those of v's rows that are not pinned, and returns them.
func (d *database) pick(ctx context.Context, tx stmt.Executor, v stmt.Values) (map[stmt.RowID]bool, error) {
	found := make(map[stmt.RowID]bool)
	err := dividing(len(v.Rows), d.failsToPick, func(from, to int) error {
		ids, err := stmt.SelectRowIDs(ctx, tx, d.statements.Pick, v.Part(from, to))
		maps.Copy(found, ids)
		return err
	})
	return found, err
}

// pickAny locks the rows of some keys that are not pinned, and returns their keys.
func (d *database) pickAny(ctx context.Context, tx stmt.Executor, lockKeys []string) (picked []string, err error) {
	err = dividing(len(lockKeys), d.failsToPick, func(from, to int) error {
		some, err := stmt.SelectTexts(ctx, tx, d.statements.PickAny, stmt.Values{Keys: lockKeys[from:to]})
		picked = append(picked, some...)
		return err
	})
	return picked, err
}

// failsToPick reports whether a row is pinned, and the statement cannot skip it.
func (d *database) failsToPick(err error) bool {
	return d.dialect.PicksOrFails && d.server.Classify(err) == sqltext.Blocked
}

// changeJoint changes the rows of a joint claim: by many, which skips those that are pinned, and then those one by
// one. The value of the outcome reports whether all were there.
func (d *database) changeJoint(
	ctx context.Context, v stmt.Values, many func(context.Context, stmt.Values) (map[stmt.RowID]bool, bool, error), one func(context.Context, Claim) batch.Outcome[bool],
) batch.Outcome[bool] {
	v.Rows = v.Each()
	done, resent, err := many(ctx, v)
	if err != nil {
		return batch.Outcome[bool]{Err: err, Unknown: resent || !d.server.IsUnapplied(err)}
	}
	left, err := d.left(ctx, v.Rows, done)
	all := batch.Outcome[bool]{Value: len(left)+len(done) == len(v.Rows), Err: err, Unknown: resent}
	for i := 0; i < len(left) && all.Err == nil; i++ {
		o := one(ctx, left[i])
		all.Value, all.Err, all.Unknown = all.Value && o.Value, o.Err, all.Unknown || o.Unknown
	}
	all.Unknown = all.Unknown || all.Err != nil // another try would not find the rows that are done
	return all
}

// left returns those of claims that are not done and whose rows are there: a statement that skips pinned rows has
// left them.
func (d *database) left(ctx context.Context, claims []Claim, done map[stmt.RowID]bool) (left []Claim, err error) {
	if len(done) == len(claims) {
		return nil, nil
	}
	rows, err := d.peekCurrent(ctx, stmt.Together(claims))
	for _, one := range claims {
		if !done[one.ID()] && rows[one.LockKey].Holder == one.Holder {
			left = append(left, one)
		}
	}
	return left, err
}
