package locktable

import (
	"context"
	"slices"
	"time"
)

// MaxRenewals is how many rows [Table.RenewAll] takes at most, those of joint claims counted one by
// one: MySQL accepts 65 535
// placeholders, of which a row needs two.
const MaxRenewals = 10_000

// Renew makes the row that carries the claim's holder last for TTL from now, unless it lasts
// longer already: a renewal that arrives late shortens nothing. It returns false if there is
// no such row or it has expired: an expired lease is lost, even while no contender has taken
// it. (Spring revives it.)
//
// pinnedFor is how long Renew tries again while a transaction has the row pinned; usually
// [PinnedTimeout]. late, unless it is nil, is called if the row was renewed after the driver had
// been left behind.
func (t *Table) Renew(ctx context.Context, c Claim, pinnedFor time.Duration, late func()) (bool, error) {
	p := renewing
	p.pinned = pinnedFor
	return callAlone(ctx, t.errors, p, c.TTL, func(ctx context.Context) (bool, error) {
		if c.IsJoint() {
			return t.renewJoint(ctx, c)
		}
		return t.renew(ctx, c)
	}, func(renewed bool, _ error) {
		if renewed && late != nil {
			late()
		}
	})
}

func (t *Table) renew(ctx context.Context, c Claim) (bool, error) {
	n, err := exec(ctx, t.pool.on(nil), t.statements.renew, values{Claim: c})
	if err != nil || n > 0 {
		return n > 0, err
	}
	// MySQL counts changed rows, not matched ones, unless the driver's clientFoundRows is
	// set: a row renewed to the same instant counts 0.
	return t.isHeld(ctx, c)
}

// RenewAll renews at most [MaxRenewals] rows, of one time-to-live, by one statement, and
// returns in the order of claims what became of each. It waits for none of them: a row that is
// pinned stays as it is. (MySQL takes two statements, in a transaction. If some rows were not
// renewed, one more finds out why.) After an error it is not known which of the rows were
// renewed. RenewAll does not return before the driver does.
func (t *Table) RenewAll(ctx context.Context, claims []Claim) ([]Outcome, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	v := together(flattened(claims))
	return call(ctx, t.errors, renewingAll, func(ctx context.Context) ([]Outcome, error) {
		rows, err := t.renewAll(ctx, v)
		if err != nil {
			return nil, err
		}
		return combinedBy(claims, rows), nil
	})
}

func (t *Table) renewAll(ctx context.Context, v values) ([]Outcome, error) {
	renewed, err := t.renewMany(ctx, v)
	if err != nil {
		return nil, err
	}
	var pinned map[rowID]bool
	if len(renewed) < len(v.rows) {
		if pinned, err = selectRowIDs(ctx, t.pool.on(nil), t.statements.heldAll, v); err != nil {
			return nil, err
		}
	}
	outcomes := make([]Outcome, len(v.rows))
	for i, c := range v.rows {
		switch id := c.id(); {
		case renewed[id]:
			outcomes[i] = Renewed
		case pinned[id]:
			outcomes[i] = Pinned
		default:
			outcomes[i] = Lost
		}
	}
	return outcomes, nil
}

// renewMany returns the rows that it has renewed.
func (t *Table) renewMany(ctx context.Context, v values) (renewed map[rowID]bool, err error) {
	if t.statements.pick.text == "" {
		return selectRowIDs(ctx, t.pool.on(nil), t.statements.renewAll, v)
	}
	return t.pickAnd(ctx, t.statements.renewAll, v)
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
