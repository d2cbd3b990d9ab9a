package sqllock

import (
	"context"
	"database/sql"
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
	var all int64
	for {
		some, err := call(ctx, r, "delete expired locks", "", func() (int64, error) {
			return r.deleteSomeExpired(ctx, ttl)
		})
		all += some
		if err != nil || some == 0 || r.statements.pickExpired.text == "" {
			return all, err
		}
	}
}

// deleteSomeExpired deletes all expired rows, or the first of them if they have
// to be picked before.
func (r *Repository) deleteSomeExpired(ctx context.Context, ttl time.Duration) (deleted int64, err error) {
	p := params{ttl: ttl}
	// READ COMMITTED, because InnoDB would otherwise lock every row and gap of
	// the table that the statement passes, other clients' included.
	err = r.inTransaction(ctx, sql.LevelReadCommitted, func(tx sqlx.ExtContext) error {
		if pick := r.statements.pickExpired; pick.text != "" {
			if p.keys, err = selectTexts(ctx, tx, pick, p); err != nil || len(p.keys) == 0 {
				return err
			}
		}
		deleted, err = execIn(ctx, tx, r.statements.removeExpired, p)
		return err
	})
	return deleted, err
}
