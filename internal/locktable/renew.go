package locktable

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/transaction"
)

// MaxRenewals is how many rows [Table.RenewAll] takes at most, those of joint claims counted one by one: MySQL
// accepts 65 535 placeholders, of which a row needs two.
const MaxRenewals = 10_000

// Renew makes the row that carries the claim's holder last for TTL from now, unless it lasts longer already: a
// renewal that arrives late shortens nothing. It returns false if there is no such row or it has expired: an expired
// lease is lost, even while no contender has taken it. (Spring revives it.)
//
// pinnedFor is how long Renew tries again while a transaction has the row pinned; usually [PinnedTimeout]. late,
// unless it is nil, is called if the row was renewed after the driver had been left behind.
func (t *Table) Renew(ctx context.Context, c Claim, pinnedFor time.Duration, late func()) (bool, error) {
	if t.file.isGone() {
		return false, nil
	}
	ctx = transaction.Urgent(ctx)
	p := renewing
	p.pinned = pinnedFor
	return callAlone(ctx, t, p, c.TTL, func(ctx context.Context) (bool, error) {
		if len(c.More) > 0 {
			return t.renewJoint(ctx, c)
		}
		return t.renew(ctx, c)
	}, func(renewed bool, _ error) {
		if renewed && late != nil {
			late()
		}
	})
}

// unpinnedTimeout is how long RenewUnpinned waits for the one writer that SQLite has at a time.
const unpinnedTimeout = 100 * time.Millisecond

// RenewUnpinned is Renew for a caller that may itself have the row pinned: it does not wait for that, and its error
// is a [PinnedRow]. On SQLite, where a transaction that has pinned a row keeps all others from writing, it gives up
// after a moment.
func (t *Table) RenewUnpinned(ctx context.Context, c Claim, late func()) (bool, error) {
	if t.file.isGone() {
		return false, nil
	}
	ctx = transaction.Urgent(ctx)
	p := renewing
	if t.dialect.Embedded {
		p.races, p.answer, p.exact = 0, unpinnedTimeout, true
	}
	got, err := callAlone(ctx, t, p, c.TTL, func(ctx context.Context) (Outcome, error) {
		outcomes, err := t.renewAll(ctx, together(c.each()))
		return combined(outcomes), err
	}, func(got Outcome, err error) {
		if err == nil && got == Renewed {
			late()
		}
	})
	if err == nil && got == Pinned || t.dialect.Embedded && (Is(err, Race) || Is(err, NoAnswer)) {
		err = &Error{Op: p.op, Kind: PinnedRow, Err: cmp.Or(err, errPinnedNow)}
	}
	return err == nil && got == Renewed, err
}

// errPinnedNow is why a row was not renewed.
var errPinnedNow = errors.New("a transaction has the row locked")

func (t *Table) renew(ctx context.Context, c Claim) (bool, error) {
	done, err := t.changeOne(ctx, t.pool.TryOutside(), t.statements.renew, values{Claim: c})
	switch {
	case err != nil || done.n > 0:
		return err == nil, err
	// MySQL counts changed rows, not matched ones, unless the driver's clientFoundRows is set: a row renewed to the
	// same instant counts 0.
	case t.readsLate():
		return done.row.isHeldBy(c) && done.row.Left >= c.TTL, nil
	default:
		return t.isHeld(ctx, c)
	}
}

// RenewAll renews at most [MaxRenewals] rows, of one time-to-live, by one statement, and returns in the order of
// claims what became of each. It waits for none of them: a row that is pinned stays as it is. (MySQL takes two
// statements, in a transaction. If some rows were not renewed, one more finds out why.) After an error it is not
// known which of the rows were renewed. RenewAll does not return before the driver does.
func (t *Table) RenewAll(ctx context.Context, claims []Claim) ([]Outcome, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	if t.file.isGone() {
		return make([]Outcome, len(claims)), nil // Lost, as the rows are for all others
	}
	v := together(flattened(claims))
	return call(transaction.Urgent(ctx), t.errors, renewingAll, func(ctx context.Context) ([]Outcome, error) {
		rows, err := t.renewAll(ctx, v)
		if err != nil {
			return nil, err
		}
		return combinedBy(claims, rows), nil
	})
}

// maxRefusals is how often the statement is sent for halves of its rows, after the server has refused one of them. If
// it refuses many, it may be about all, and to ask for each of them would be of no use.
const maxRefusals = 64

// renewAll renews rows by one statement. A row that the server refuses must not keep the others from being renewed.
// It counts as pinned, for the caller's own statement has an error that says why.
func (t *Table) renewAll(ctx context.Context, v values) ([]Outcome, error) {
	outcomes, left := slices.Repeat([]Outcome{Pinned}, len(v.rows)), maxRefusals
	refused := func(err error) bool {
		left--
		return left >= 0 && t.errors.isOf(err, dialect.Refused)
	}
	err := dividing(len(v.rows), refused, func(from, to int) error {
		some, err := t.renewSome(ctx, v.part(from, to))
		copy(outcomes[from:to], some)
		return err
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

func (t *Table) renewSome(ctx context.Context, v values) ([]Outcome, error) {
	renewed, _, err := t.changeMany(ctx, t.pool.TryOutside(), t.statements.renewAll, v)
	if err != nil {
		return nil, err
	}
	var pinned map[rowID]bool
	if len(renewed) < len(v.rows) {
		if pinned, err = t.heldCurrent(ctx, v); err != nil {
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
