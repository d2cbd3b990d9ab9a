package locktable

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/transaction"
)

// DeleteExpired deletes the expired rows of the region and returns how many there were. Rows that a transaction has
// pinned are left for the next time. In the four-column layout ttl decides which rows have expired.
func (t *Table) DeleteExpired(ctx context.Context, ttl time.Duration) (int64, error) {
	v := values{Claim: Claim{TTL: ttl}}
	return t.deleteUnpinned(ctx, deletingExpired, t.statements.pickExpired, t.statements.deleteExpired, v)
}

// DeleteRow deletes the row of any region that carries the holder, expired or not. It returns false if there is none,
// with the same exception as [Table.Release].
func (t *Table) DeleteRow(ctx context.Context, row Row) (bool, error) {
	s, v := t.statements.release.inRegion(row.Region), values{Claim: Claim{LockKey: row.LockKey, Holder: row.Holder}}
	return callAlone(ctx, t, releasing, 0, func(ctx context.Context) (deleted bool, err error) {
		try, n := t.pool.Try(), int64(0)
		for try.Next(ctx) {
			n, try.Err = exec(ctx, try.Conn, s, v)
		}
		return try.Err == nil && (n > 0 || try.Resent), try.Err
	}, nil)
}

// leastDeletions is how often DeleteClient tries to delete rows that are locked, however long that
// takes. Each statement that reads the table may have them locked for a moment, and on a slow server
// there are few tries within PinnedTimeout.
const leastDeletions = 10

// DeleteClient deletes all rows of this client in the region. If a transaction has some of them pinned for longer
// than [PinnedTimeout], it deletes the others and returns an error of kind [PinnedRow].
func (t *Table) DeleteClient(ctx context.Context) error {
	v, began := values{client: t.holders.prefix()}, time.Now()
	for n := 0; ; n++ {
		if _, err := t.deleteUnpinned(ctx, deletingClient, t.statements.pickClient, t.statements.deleteClient, v); err != nil {
			return err
		}
		left, err := callAlone(ctx, t, deletingClient, 0, func(ctx context.Context) (int, error) {
			return t.count(ctx, t.statements.countClient, v)
		}, nil)
		switch {
		case err != nil || left == 0:
			return err
		case time.Since(began) >= PinnedTimeout && n+1 >= leastDeletions:
			return &Error{Op: deletingClient.op, Kind: PinnedRow, Err: fmt.Errorf("%d rows of %s are left", left, t.holders.client)}
		case !pauseAfterRace(ctx, n):
			return t.errors.explain(ctx, deletingClient.op, ctx.Err())
		}
	}
}

// deleteUnpinned runs s, which deletes some rows that are not pinned, until there are none. It returns how many there
// were. Each statement has a bounded number, so that none keeps rows locked for long.
func (t *Table) deleteUnpinned(ctx context.Context, p policy, pick, s statement, v values) (all int64, err error) {
	for {
		some, err := callAlone(ctx, t, p, 0, func(ctx context.Context) (int64, error) {
			return t.deletePicked(ctx, pick, s, v)
		}, nil)
		all += some
		if err != nil || some == 0 {
			return all, err
		}
	}
}

// deletePicked runs s once, for what pick answers if there is such a statement, or for as
// many as a message has room for.
func (t *Table) deletePicked(ctx context.Context, pick, s statement, v values) (deleted int64, err error) {
	for {
		n, deleted, err := t.deletePickedOnce(ctx, pick, s, v)
		if !t.hasRefused(n, err) {
			return deleted, err
		}
	}
}

func (t *Table) deletePickedOnce(ctx context.Context, pick, s statement, v values) (picked int, deleted int64, err error) {
	// READ COMMITTED, because InnoDB would otherwise lock every row and gap of the table that the statement passes,
	// other clients' included.
	_, err = t.pool.Run(ctx, readCommitted, func(tx *transaction.Tx) error {
		if pick.text != "" {
			v.keys, err = selectTexts(ctx, tx, pick, v)
			picked = t.room.of(len(v.keys))
			v.keys = v.keys[:picked]
			if t.dialect.PicksOrFails && len(v.keys) > 0 && err == nil {
				v.keys, err = t.pickAny(ctx, tx, v.keys)
			}
			if err != nil || len(v.keys) == 0 {
				return err
			}
		}
		deleted, err = exec(ctx, tx, s, v)
		return err
	})
	return picked, deleted, err
}
