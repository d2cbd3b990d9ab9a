package locktable

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
)

// errPartlyTaken rolls an acquisition back that did not get all of its rows.
var errPartlyTaken = errors.New("one of the rows is taken")

// errPinned rolls an acquisition back that would have to wait for a row.
var errPinned = errors.New("a row that has expired is pinned")

// longestPinnedPause limits the pause after that. There is no holder to wait for, so the next attempt
// comes soon.
const longestPinnedPause = 200 * time.Millisecond

// acquireClaim makes an attempt for a claim of one row or of several.
func (t *Table) acquireClaim(ctx context.Context, c Claim) (effect[Result], error) {
	if c.IsJoint() {
		return t.acquireJoint(ctx, c)
	}
	return t.acquireOne(ctx, c)
}

// acquireJoint makes an attempt for all rows of c in one transaction, which is rolled back
// unless it gets all of them. They are written in the order of their keys, so that processes
// cannot deadlock. If a row is taken, the result says which only where that costs nothing.
func (t *Table) acquireJoint(ctx context.Context, c Claim) (got effect[Result], err error) {
	var expired []string
	if t.statements.pickAny.text != "" { // the statement would wait for rows that are being renewed
		var taken Row
		if taken, expired, err = t.peekJoint(ctx, c); err != nil || taken != (Row{}) {
			return effect[Result]{value: Result{Row: taken}}, err
		}
	}
	claims := c.each()
	var tokens map[string]int64
	got.unknown, err = t.writeInTransaction(ctx, ways{
		statement: func(db executor, _ bool) (written bool, err error) {
			if err := t.pickExpired(ctx, db, expired); err != nil {
				return false, err
			}
			tokens, written, err = t.upsertMany(ctx, db, together(claims), false)
			if err == nil && len(tokens) < len(claims) {
				err = t.explainPartly(ctx, db, together(claims))
			}
			if t.errors.isOf(err, dialect.Repeated) {
				err = t.errOneRow()
			}
			return written, err
		},
	})
	switch {
	case errors.Is(err, errPinned):
		bounded.Sleep(ctx, 1+jitter.N(longestPinnedPause))
		return effect[Result]{}, nil
	case errors.Is(err, errPartlyTaken):
		return effect[Result]{}, nil
	case err != nil:
		return got, err
	}
	got.value.Acquired = true
	for _, token := range tokens {
		// The tokens of earlier holders of a row were drawn before that of this row.
		got.value.Token = max(got.value.Token, token)
	}
	t.countToken(got.value.Token) //nolint:contextcheck // the statement is not the caller's
	return got, nil
}

// explainPartly returns why not all rows of v were acquired. If no other holder has one of them, some
// are one row, because the collation takes different keys for one.
func (t *Table) explainPartly(ctx context.Context, db sqlx.QueryerContext, v values) error {
	if t.collation == "" {
		return errPartlyTaken
	}
	rows, err := selectRows(ctx, db, t.statements.peekAll, v)
	if err != nil {
		return err
	}
	// There may be none: the server of a cluster may have ceased to be a member.
	if len(rows) == 0 || slices.ContainsFunc(rows, func(row Row) bool { return row.Holder != v.rows[0].Holder }) {
		return errPartlyTaken
	}
	return t.errOneRow()
}

// errOneRow says that the rows of a joint claim can never be acquired together.
func (t *Table) errOneRow() error {
	return &Error{acquiring.op, OneRow, fmt.Errorf("some of the keys differ, but are one for the database, because LOCK_KEY has the collation or type %s, "+
		"which does not distinguish them: name one of them, or change the collation", cmp.Or(t.collation, "of its own"))}
}

// pickExpired locks rows that have expired, or returns errPinned. The statement that acquires would wait
// for those that are pinned, on Oracle's MySQL for as long as the session says, and would keep the other
// rows, which it has written, from all others meanwhile.
func (t *Table) pickExpired(ctx context.Context, db sqlx.QueryerContext, lockKeys []string) error {
	if len(lockKeys) == 0 {
		return nil
	}
	picked, err := selectTexts(ctx, db, t.statements.pickAny, values{keys: lockKeys})
	if err == nil && len(picked) < len(lockKeys) {
		err = errPinned
	}
	return err
}
