package sqllock

import (
	"context"
	"database/sql"
	"slices"
	"time"

	"github.com/jmoiron/sqlx"
)

// maxRenewal is how many rows one statement renews at most: MySQL takes 65 535
// placeholders, of which a row needs two.
const maxRenewal = 10_000

// An Ownership says that a row belongs to somebody: the row of Key, and the
// CLIENT_ID that is to stand in it.
type Ownership struct{ Key, Holder string }

// A Renewal says what became of a row that was to be renewed.
type Renewal int

const (
	// Lost means that there is no such row, or that it has expired.
	Lost Renewal = iota
	// Renewed means that the row lasts for its time-to-live again.
	Renewed
	// Pinned means that the row is there, but that a transaction has pinned it
	// (see [Lease.Guard]) or is just changing it, so that it could not be renewed.
	Pinned
)

// Renew makes the row of key that carries the holder last for ttl from now, unless it
// lasts longer already: a renewal that arrives late shortens nothing. It returns false
// if there is no such row or it has expired: an expired lease is lost, even while
// nobody has taken it. (Spring revives it.)
func (r *Repository) Renew(ctx context.Context, key, holder string, ttl time.Duration) (bool, error) {
	p, err := r.params(key, holder, ttl)
	if err != nil {
		return false, err
	}
	return r.renew(ctx, p, longestPin, nil)
}

// renew is Renew, with a limit to the wait for a row that is pinned. late, unless it is nil, is
// called if the row was renewed after the driver had been left behind.
func (r *Repository) renew(ctx context.Context, p params, longest time.Duration, late func()) (renewed bool, err error) {
	err = r.retryPinned(ctx, longest, "renew", p.name, func() (err error) {
		renewed, err = within(ctx, p.ttl, func(ctx context.Context) (bool, error) {
			return r.renewOnce(ctx, p)
		}, func(renewed bool, _ error) {
			if renewed && late != nil {
				late()
			}
		})
		return err
	})
	return renewed, err
}

func (r *Repository) renewOnce(ctx context.Context, p params) (bool, error) {
	n, err := execIn(ctx, r.on(nil), r.statements.renew, p)
	if err != nil || n > 0 {
		return n > 0, err
	}
	// MySQL counts changed rows, not matched ones, unless the driver's
	// clientFoundRows is set: a row renewed to the same instant counts 0.
	return r.isHeld(ctx, p)
}

// RenewAll renews many rows by one statement, and says in the order of rows what
// became of each. It waits for none of them: a row that is pinned is left as it
// is. (MySQL takes two statements, in a transaction. If some rows were not
// renewed, one more finds out why. More than 10 000 rows are taken in parts.) On
// an error it is not known which of the rows were renewed.
func (r *Repository) RenewAll(ctx context.Context, rows []Ownership, ttl time.Duration) ([]Renewal, error) {
	return answered(ctx, "renew all", "", func() ([]Renewal, error) { return r.renewAll(ctx, rows, ttl) })
}

// renewAll is RenewAll, for as long as the driver takes.
func (r *Repository) renewAll(ctx context.Context, rows []Ownership, ttl time.Duration) ([]Renewal, error) {
	if err := checkTTL(ttl); err != nil {
		return nil, err
	}
	outcome := make([]Renewal, 0, len(rows))
	for part := range slices.Chunk(rows, maxRenewal) {
		p := params{ttl: ttl, left: ttl, rows: make([]params, len(part))}
		for i, row := range part {
			var err error
			if p.rows[i], err = r.params(row.Key, row.Holder, ttl); err != nil {
				return nil, err
			}
		}
		some, err := r.renewPart(ctx, p)
		if err != nil {
			return nil, err
		}
		outcome = append(outcome, some...)
	}
	return outcome, nil
}

func (r *Repository) renewPart(ctx context.Context, p params) ([]Renewal, error) {
	outcome := make([]Renewal, len(p.rows))
	err := r.retry(ctx, "renew all", "", func() error {
		renewed, err := r.renewMany(ctx, p)
		if err != nil {
			return err
		}
		var pinned map[rowID]bool
		if len(renewed) < len(p.rows) {
			if pinned, err = selectRowIDs(ctx, r.on(nil), r.statements.heldAll, p); err != nil {
				return err
			}
		}
		for i, row := range p.rows {
			switch id := row.id(); {
			case renewed[id]:
				outcome[i] = Renewed
			case pinned[id]:
				outcome[i] = Pinned
			default:
				outcome[i] = Lost
			}
		}
		return nil
	})
	return outcome, err
}

// renewMany returns the rows that it has renewed.
func (r *Repository) renewMany(ctx context.Context, p params) (renewed map[rowID]bool, err error) {
	if r.statements.pick.text == "" {
		return selectRowIDs(ctx, r.on(nil), r.statements.renewAll, p)
	}
	return r.pickAnd(ctx, r.statements.renewAll, p)
}

// pickAnd runs s, a statement for many rows, for those of p's that are not pinned, and
// returns them.
func (r *Repository) pickAnd(ctx context.Context, s statement, p params) (picked map[rowID]bool, err error) {
	err = r.inTransaction(ctx, sql.LevelReadCommitted, func(tx sqlx.ExtContext) error {
		found, err := selectRowIDs(ctx, tx, r.statements.pick, p)
		if err != nil {
			return err
		}
		some := p.only(found)
		picked = make(map[rowID]bool, len(some.rows))
		for _, row := range some.rows {
			picked[row.id()] = true
		}
		if len(picked) > 0 {
			_, err = execIn(ctx, tx, s, some)
		}
		return err
	})
	return picked, err
}

// leave makes the row last for left from now under another name, so that nothing its
// holder has sent before can shorten or lengthen it. p.ttl is the time-to-live of
// those who will judge it, which matters in the four-column layout.
func (r *Repository) leave(ctx context.Context, p params, left time.Duration) (ok bool, err error) {
	p.left, p.next = left, r.NewHolder()
	err = r.retry(ctx, "leave", p.name, func() (err error) {
		ok, err = within(ctx, p.ttl, func(ctx context.Context) (bool, error) { return r.leaveOnce(ctx, p) }, nil)
		return err
	})
	return ok, err
}

func (r *Repository) leaveOnce(ctx context.Context, p params) (left bool, err error) {
	resent, err := r.once(ctx, r.statements.leave, p, func(db executor, p params) error {
		n, err := execIn(ctx, db, r.statements.leave, p)
		left = n > 0
		return err
	})
	if err != nil || left || !resent {
		return left, err
	}
	p.holder = p.next // has the row been left to it the first time?
	return r.isHeld(ctx, p)
}
