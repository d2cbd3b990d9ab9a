package locktable

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
)

// A joint claim is one of several rows: one acquisition has all of them, or none. It has one
// holder. Each verb of the table takes it like that of one row, and does what it does to all of
// the rows: to acquire, to release and to renew them by one statement, to keep and to guard them
// one by one. Joint claims are not batched: they are batches.

// IsJoint reports whether c is a claim of several rows.
func (c Claim) IsJoint() bool { return len(c.More) > 0 }

// count is how many rows c is about.
func (c Claim) count() int { return 1 + len(c.More) }

// lockKeyAt is the LOCK_KEY of the i-th row.
func (c Claim) lockKeyAt(i int) string {
	if i == 0 {
		return c.LockKey
	}
	return c.More[i-1]
}

// lockKeys are the LOCK_KEYs of c, in order.
func (c Claim) lockKeys() []string { return append([]string{c.LockKey}, c.More...) }

// single is the claim of one of c's rows.
func (c Claim) single(lockKey string) Claim {
	return Claim{LockKey: lockKey, Holder: c.Holder, TTL: c.TTL}
}

// each returns the claims of c's rows, in the order of their keys.
func (c Claim) each() []Claim {
	claims := make([]Claim, c.count())
	for i := range claims {
		claims[i] = c.single(c.lockKeyAt(i))
	}
	return claims
}

// errPartlyTaken rolls an acquisition back that did not get all of its rows.
var errPartlyTaken = errors.New("one of the rows is taken")

// errPinned rolls an acquisition back that would have to wait for a row.
var errPinned = errors.New("a row that has expired is pinned")

// longestPinnedPause limits the pause after that. There is no holder to wait for, so the next attempt
// comes soon.
const longestPinnedPause = 200 * time.Millisecond

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
				err = errPartlyTaken
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

// peekJoint returns the row that keeps c from being acquired: of those that others hold the one
// that lasts longest. It is zero if there is none. expired are the LOCK_KEYs of the rows to be taken over.
func (t *Table) peekJoint(ctx context.Context, c Claim) (longest Row, expired []string, err error) {
	lockKeys := c.lockKeys()
	rows, err := t.peekMany(ctx, values{Claim: c, keys: lockKeys})
	for _, lockKey := range lockKeys {
		switch row, there := rows[lockKey]; {
		case !there:
		case row.Holder == c.Holder || row.Expired():
			expired = append(expired, lockKey)
		case longest == (Row{}) || row.Left > longest.Left:
			longest = row
		}
	}
	return longest, expired, err
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

// renewJoint renews all rows of c, and waits for those that are pinned.
func (t *Table) renewJoint(ctx context.Context, c Claim) (bool, error) {
	claims := c.each()
	outcomes, err := t.renewAll(ctx, together(claims))
	if err != nil || slices.Contains(outcomes, Lost) {
		return false, err
	}
	for i, outcome := range outcomes {
		if outcome != Pinned {
			continue
		}
		if renewed, err := t.renew(ctx, claims[i]); err != nil || !renewed {
			return false, err
		}
	}
	return true, nil
}

// isJointHeld reports whether all rows of c carry its holder and have not expired.
func (t *Table) isJointHeld(ctx context.Context, c Claim) (bool, error) {
	claims := c.each()
	held, err := selectRowIDs(ctx, t.pool.on(nil), t.statements.heldAll, together(claims))
	return len(held) == len(claims), err
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

// pinAll runs pin for the rows of c, in the order of their keys, until one is not pinned.
func pinAll(c Claim, pin func(Claim) (bool, error)) (pinned bool, err error) {
	for _, one := range c.each() {
		if pinned, err = pin(one); err != nil || !pinned {
			return false, err
		}
	}
	return true, nil
}

// combined is what became of a joint claim whose rows have these outcomes.
func combined(outcomes []Outcome) Outcome {
	switch {
	case slices.Contains(outcomes, Lost):
		return Lost
	case slices.Contains(outcomes, Pinned):
		return Pinned
	default:
		return Renewed
	}
}

// combinedBy combines the outcomes of the rows of claims, which stand one after the other.
func combinedBy(claims []Claim, rows []Outcome) []Outcome {
	outcomes := make([]Outcome, len(claims))
	for i, c := range claims {
		n := c.count()
		outcomes[i], rows = combined(rows[:n]), rows[n:]
	}
	return outcomes
}

// flattened returns the claims of all rows of claims.
func flattened(claims []Claim) []Claim {
	if !slices.ContainsFunc(claims, Claim.IsJoint) {
		return claims
	}
	var all []Claim
	for _, c := range claims {
		all = append(all, c.each()...)
	}
	return all
}
