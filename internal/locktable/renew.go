package locktable

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
)

// An Outcome is what became of a row that was to be renewed beside others.
type Outcome int

const (
	// Lost means that there is no such row, or that it has expired.
	Lost Outcome = iota
	// Renewed means that the row lasts for its time-to-live again.
	Renewed
	// Pinned means that the row is there, but that a transaction has pinned it or is
	// changing it, so that it was not renewed.
	Pinned
)

// MaxRenewals is how many rows [renewals.RenewAll] takes at most, those of joint claims counted one by one: MySQL
// accepts 65 535 placeholders, of which a row needs two.
const MaxRenewals = 10_000

// A limit is the value that WithMaxRenewals gives a context.
type limit int

// WithMaxRenewals returns a context with which [Open] makes a table that has another limit than [MaxRenewals], for
// tests: several statements for one heartbeat need a few hundred rows then.
func WithMaxRenewals(ctx context.Context, n int) context.Context {
	return context.WithValue(ctx, limit(0), limit(n))
}

// maxRenewalsOf returns what [WithMaxRenewals] has given ctx, or [MaxRenewals].
func maxRenewalsOf(ctx context.Context) int {
	n, _ := ctx.Value(limit(0)).(limit)
	return cmp.Or(int(n), MaxRenewals)
}

// renewals make rows last for longer.
type renewals struct {
	*database

	most int // rows of one statement
}

// MaxRenewals returns how many rows one statement renews or keeps at most.
func (r *renewals) MaxRenewals() int { return r.most }

// Renew makes the row that carries the claim's holder last for TTL from now, unless it lasts longer already: a
// renewal that arrives late shortens nothing. It returns false if there is no such row or it has expired: an expired
// lease is lost, even while no contender has taken it. (Spring revives it.)
//
// pinnedFor is how long Renew tries again while a transaction has the row pinned; usually [PinnedTimeout]. late,
// unless it is nil, is called if the row was renewed after the driver had been left behind.
func (r *renewals) Renew(ctx context.Context, c Claim, pinnedFor time.Duration, late func()) (bool, error) {
	if r.file.IsGone() {
		return false, nil
	}
	ctx = transaction.Urgent(ctx)
	p := renewing
	p.Pinned = pinnedFor
	return dbcall.CallInTime(ctx, r.server, p, c.TTL, func(ctx context.Context) (bool, error) {
		if len(c.More) > 0 {
			return r.renewJoint(ctx, c)
		}
		return r.renew(ctx, c)
	}, func(renewed bool, _ error) {
		if renewed && late != nil {
			late()
		}
	})
}

// unpinnedTimeout is how long RenewUnpinned waits for the one writer that SQLite has at a time.
const unpinnedTimeout = 100 * time.Millisecond

// RenewUnpinned is Renew for a caller that may itself have the row pinned: it does not wait for that, and its error
// is a [dbcall.PinnedRow]. On SQLite, where a transaction that has pinned a row keeps all others from writing, it gives up
// after a moment.
func (r *renewals) RenewUnpinned(ctx context.Context, c Claim, late func()) (bool, error) {
	if r.file.IsGone() {
		return false, nil
	}
	ctx = transaction.Urgent(ctx)
	p := renewing
	if r.dialect.Embedded {
		p.Races, p.Answer, p.Exact = 0, unpinnedTimeout, true
	}
	got, err := dbcall.CallInTime(ctx, r.server, p, c.TTL, func(ctx context.Context) (Outcome, error) {
		outcomes, err := r.renewAll(ctx, stmt.Together(c.Each()))
		return combined(outcomes), err
	}, func(got Outcome, err error) {
		if err == nil && got == Renewed {
			late()
		}
	})
	if err == nil && got == Pinned || r.dialect.Embedded && (dbcall.Is(err, dbcall.Race) || dbcall.Is(err, dbcall.NoAnswer)) {
		err = &dbcall.Error{Op: p.Op, Kind: dbcall.PinnedRow, Err: cmp.Or(err, errPinnedNow)}
	}
	return err == nil && got == Renewed, err
}

// errPinnedNow is why a row was not renewed.
var errPinnedNow = errors.New("a transaction has the row locked")

func (r *renewals) renew(ctx context.Context, c Claim) (bool, error) {
	done, err := r.changeOne(ctx, r.pool.TryOutside(), r.statements.Renew, stmt.Values{Claim: c})
	switch {
	case err != nil || done.n > 0:
		return err == nil, err
	// MySQL counts changed rows, not matched ones, unless the driver's clientFoundRows is set: a row renewed to the
	// same instant counts 0.
	case r.readsLate():
		return done.row.IsHeldBy(c) && done.row.Left >= c.TTL, nil
	default:
		return r.isHeld(ctx, c)
	}
}

// RenewAll renews at most [MaxRenewals] rows, of one time-to-live, by one statement, and returns in the order of
// claims what became of each. It waits for none of them: a row that is pinned stays as it is. (MySQL takes two
// statements, in a transaction. If some rows were not renewed, one more finds out why.) After an error it is not
// known which of the rows were renewed. RenewAll does not return before the driver does.
func (r *renewals) RenewAll(ctx context.Context, claims []Claim) ([]Outcome, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	if r.file.IsGone() {
		return make([]Outcome, len(claims)), nil // Lost, as the rows are for all others
	}
	v := stmt.Together(stmt.Flattened(claims))
	return dbcall.Call(transaction.Urgent(ctx), r.server, renewingAll, func(ctx context.Context) ([]Outcome, error) {
		rows, err := r.renewAll(ctx, v)
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
func (r *renewals) renewAll(ctx context.Context, v stmt.Values) ([]Outcome, error) {
	outcomes, left := slices.Repeat([]Outcome{Pinned}, len(v.Rows)), maxRefusals
	refused := func(err error) bool {
		left--
		return left >= 0 && r.server.IsOf(err, sqltext.Refused)
	}
	err := dividing(len(v.Rows), refused, func(from, to int) error {
		some, err := r.renewSome(ctx, v.Part(from, to))
		copy(outcomes[from:to], some)
		return err
	})
	if err != nil {
		return nil, err
	}
	return outcomes, nil
}

func (r *renewals) renewSome(ctx context.Context, v stmt.Values) ([]Outcome, error) {
	renewed, _, err := r.changeMany(ctx, r.pool.TryOutside(), r.statements.RenewAll, v)
	if err != nil {
		return nil, err
	}
	var pinned map[stmt.RowID]bool
	if len(renewed) < len(v.Rows) {
		if pinned, err = r.heldCurrent(ctx, v); err != nil {
			return nil, err
		}
	}
	outcomes := make([]Outcome, len(v.Rows))
	for i, c := range v.Rows {
		switch id := c.ID(); {
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
func (r *renewals) renewJoint(ctx context.Context, c Claim) (bool, error) {
	claims := c.Each()
	outcomes, err := r.renewAll(ctx, stmt.Together(claims))
	if err != nil || slices.Contains(outcomes, Lost) {
		return false, err
	}
	for i, outcome := range outcomes {
		if outcome != Pinned {
			continue
		}
		if renewed, err := r.renew(ctx, claims[i]); err != nil || !renewed {
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
		n := c.Count()
		outcomes[i], rows = combined(rows[:n]), rows[n:]
	}
	return outcomes
}
