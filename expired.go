package sqllock

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"
)

// DeleteExpired removes the expired rows of the region and returns how many
// there were. Rows that a transaction has pinned are left for the next time. In
// the four-column layout ttl decides which have expired.
func (r *Repository) DeleteExpired(ctx context.Context, ttl time.Duration) (int64, error) {
	if err := checkTTL(ttl); err != nil {
		return 0, err
	}
	return r.removeUnpinned(ctx, "delete expired locks", r.statements.pickExpired, r.statements.removeExpired, params{ttl: ttl})
}

// removeUnpinned runs remove, which deletes rows that are not pinned: once, or if they have to
// be picked before, until there are none. It returns how many there were.
func (r *Repository) removeUnpinned(ctx context.Context, op string, pick, remove statement, p params) (all int64, err error) {
	for {
		some, err := call(ctx, r, op, "", func() (int64, error) { return r.removePicked(ctx, pick, remove, p) })
		all += some
		if err != nil || some == 0 || pick.text == "" {
			return all, err
		}
	}
}

// removePicked runs remove once, for what pick answers if there is such a statement.
func (r *Repository) removePicked(ctx context.Context, pick, remove statement, p params) (removed int64, err error) {
	// READ COMMITTED, because InnoDB would otherwise lock every row and gap of
	// the table that the statement passes, other clients' included.
	err = r.inTransaction(ctx, sql.LevelReadCommitted, func(tx sqlx.ExtContext) error {
		if pick.text != "" {
			if p.keys, err = selectTexts(ctx, tx, pick, p); err != nil || len(p.keys) == 0 {
				return err
			}
		}
		removed, err = execIn(ctx, tx, remove, p)
		return err
	})
	return removed, err
}

// removeClient deletes the rows of this client. For those that are pinned it tries until
// longestPin is over, and leaves them then.
func (r *Repository) removeClient(ctx context.Context) error {
	p, began := params{client: r.client.prefix()}, time.Now()
	for n := 0; ; n++ {
		if _, err := r.removeUnpinned(ctx, "close", r.statements.pickClient, r.statements.removeClient, p); err != nil {
			return err
		}
		left, err := call(ctx, r, "close", "", func() (n int, err error) {
			count := r.statements.countClient
			err = r.db.QueryRowxContext(ctx, count.text, count.args(p)...).Scan(&n)
			return n, err
		})
		switch {
		case err != nil || left == 0:
			return err
		case time.Since(began) >= longestPin:
			return fmt.Errorf("%w: close: %d rows of %s are left", ErrPinned, left, r.client.id)
		case !pauseAfterRace(ctx, n):
			return r.trouble(ctx, "close", "", ctx.Err())
		}
	}
}
