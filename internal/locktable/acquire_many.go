package locktable

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/batch"
)

// acquireMany acquires the rows of a batch in one transaction, in the order of their keys, so
// that processes cannot deadlock.
func (t *Table) acquireMany(ctx context.Context, claims []Claim, outcomes []batch.Outcome[effect[Result]]) {
	free, err := t.withoutTaken(ctx, claims, outcomes)
	var unknown, resent bool
	var tokens map[string]int64
	if err == nil && len(free.rows) > 0 {
		unknown, resent, err = t.write(ctx, ways{
			statement: func(db executor, verify bool) (written bool, err error) {
				tokens, written, err = t.upsertMany(ctx, db, free, verify)
				return written, err
			},
			message: func() (resent bool, err error) {
				tokens, resent, err = t.acquireManyByMessage(ctx, free)
				return resent, err
			},
		})
	}
	if err != nil {
		tokens = nil
	}
	err = t.errorOfMany(ctx, err, unknown)
	for i, c := range claims {
		outcomes[i].Value.value.Batched = true
		if o := &outcomes[i]; o.Err == nil && o.Value.value.Row == (Row{}) {
			o.Err, o.Value.unknown, o.Value.resent = err, unknown, resent
			o.Value.value.Token, o.Value.value.Acquired = tokens[c.LockKey]
		}
	}
	for _, token := range tokens {
		t.countToken(token) //nolint:contextcheck // the statement is not the batch's. All have the same token
		break
	}
}

// errorOfMany decides what an error of a statement for many is to each of them.
func (t *Table) errorOfMany(ctx context.Context, err error, unknown bool) error {
	if err == nil || unknown || ctx.Err() != nil { // the batch has used up the time of its callers
		return err
	}
	switch t.errors(err) {
	case dialect.Transient, dialect.Schema, dialect.NoKey, dialect.ReadOnly:
		return err // it would be the same alone
	default:
		return errRetryAlone
	}
}

// withoutTaken returns the values for the rows that may be acquired together. On MySQL a
// statement waits for a row that is pinned or being changed as long as the session says, and
// so would all others: there a batch has only rows that do not exist yet.
func (t *Table) withoutTaken(ctx context.Context, claims []Claim, outcomes []batch.Outcome[effect[Result]]) (values, error) {
	if t.dialect.Returning {
		return together(claims), nil
	}
	rows, err := t.peekMany(ctx, together(claims))
	if err != nil {
		return values{}, err
	}
	var free []Claim
	for i, c := range claims {
		switch row, there := rows[c.LockKey]; {
		case !there:
			free = append(free, c)
		case row.Expired() || row.Holder == c.Holder:
			outcomes[i].Err = errRetryAlone
		default:
			outcomes[i].Value.value.Row = row
		}
	}
	return together(free), nil
}

// upsertMany is upsert for many rows. It returns the fencing tokens of those that were
// acquired, by LOCK_KEY.
func (t *Table) upsertMany(ctx context.Context, db executor, v values, verify bool) (tokens map[string]int64, written bool, err error) {
	if t.dialect.Returning || t.dialect.ReturnsHolder {
		tokens, err = t.upsertReturning(ctx, db, v, verify)
	} else {
		tokens, written, err = t.upsertAndSelect(ctx, db, v)
	}
	if err != nil || t.statements.drawOne.text == "" || len(tokens) == 0 {
		return tokens, written || err == nil, err
	}
	// One for all: it is higher than any before, and their keys are different.
	result, err := db.ExecContext(ctx, t.statements.drawOne.text)
	if err != nil {
		return nil, true, err
	}
	token, err := t.tokens.inserted(result)
	if err != nil {
		return nil, true, err
	}
	for lockKey := range tokens {
		tokens[lockKey] = token
	}
	return tokens, true, nil
}

func (t *Table) upsertReturning(ctx context.Context, db sqlx.QueryerContext, v values, verify bool) (map[string]int64, error) {
	s := t.statements.acquireAll
	if verify {
		s = t.statements.acquireAllVerified
	}
	text, args, err := s.bindMany(t.statements.acquireRow, v)
	if err != nil {
		return nil, err
	}
	got := t.newAcquired(v)
	if err := queryText(ctx, db, text, args, func(rows *sqlx.Rows) error { return got.scan(rows, verify) }); err != nil {
		return nil, err
	}
	return got.result()
}

func (t *Table) upsertAndSelect(ctx context.Context, db executor, v values) (tokens map[string]int64, written bool, err error) {
	text, args, err := t.statements.acquireAll.bindMany(t.statements.acquireRow, v)
	if err != nil {
		return nil, false, err
	}
	if _, err := db.ExecContext(ctx, text, args...); err != nil {
		return nil, false, err
	}
	owned, err := selectRowIDs(ctx, db, t.statements.heldAll, v)
	tokens = make(map[string]int64, len(owned))
	for _, c := range v.rows {
		if owned[c.id()] {
			tokens[c.LockKey] = 0
		}
	}
	return tokens, true, err
}
