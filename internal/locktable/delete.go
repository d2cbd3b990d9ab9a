package locktable

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/clientid"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
)

// deletions delete rows for other reasons than that their leases end.
type deletions struct {
	*database

	ids *clientid.Maker
}

// DeleteExpired deletes the expired rows of the region and returns how many there were. Rows that a transaction has
// pinned are left for the next time. In the four-column layout ttl decides which rows have expired.
func (d *deletions) DeleteExpired(ctx context.Context, ttl time.Duration) (int64, error) {
	v := stmt.Values{Claim: Claim{TTL: ttl}}
	return d.deleteUnpinned(ctx, deletingExpired, d.statements.PickExpired, d.statements.DeleteExpired, v)
}

// DeleteRow deletes the row of any region that carries the holder, expired or not. It returns false if there is none,
// with the same exception as [releases.Release].
func (d *deletions) DeleteRow(ctx context.Context, row Row) (bool, error) {
	s, v := d.statements.Delete.InRegion(row.Region), stmt.Values{Claim: Claim{LockKey: row.LockKey, Holder: row.Holder}}
	return dbcall.CallInTime(ctx, d.server, releasing, 0, func(ctx context.Context) (deleted bool, err error) {
		try, n := d.pool.Try(), int64(0)
		for try.Next(ctx) {
			n, try.Err = stmt.Exec(ctx, try.Conn, s, v)
		}
		return try.Err == nil && (n > 0 || try.Resent), try.Err
	}, nil)
}

// leastDeletions is how often DeleteClient tries to delete rows that are locked, however long that
// takes. Each statement that reads the table may have them locked for a moment, and on a slow server
// there are few tries within PinnedTimeout.
const leastDeletions = 10

// DeleteClient deletes all rows of this client in the region. If a transaction has some of them pinned for longer
// than [PinnedTimeout], it deletes the others and returns an error of kind [dbcall.PinnedRow].
func (d *deletions) DeleteClient(ctx context.Context) error {
	v, began := stmt.Values{Client: d.ids.Prefix()}, time.Now()
	for n := 0; ; n++ {
		if _, err := d.deleteUnpinned(ctx, deletingClient, d.statements.PickClient, d.statements.DeleteClient, v); err != nil {
			return err
		}
		left, err := dbcall.CallInTime(ctx, d.server, deletingClient, 0, func(ctx context.Context) (int, error) {
			return d.count(ctx, d.statements.CountClient, v)
		}, nil)
		switch {
		case err != nil || left == 0:
			return err
		case time.Since(began) >= PinnedTimeout && n+1 >= leastDeletions:
			return &dbcall.Error{Op: deletingClient.Op, Kind: dbcall.PinnedRow, Err: fmt.Errorf("%d rows of %s are left", left, d.ids.Client())}
		case !dbcall.PauseAfterRace(ctx, n):
			return d.server.Explain(ctx, deletingClient.Op, ctx.Err())
		}
	}
}

// deleteUnpinned runs s, which deletes some rows that are not pinned, until there are none. It returns how many there
// were. Each statement has a bounded number, so that none keeps rows locked for long.
func (d *deletions) deleteUnpinned(ctx context.Context, p dbcall.Policy, pick, s stmt.Statement, v stmt.Values) (all int64, err error) {
	for {
		some, err := dbcall.CallInTime(ctx, d.server, p, 0, func(ctx context.Context) (int64, error) {
			return d.deletePicked(ctx, pick, s, v)
		}, nil)
		all += some
		if err != nil || some == 0 {
			return all, err
		}
	}
}

// deletePicked runs s once, for what pick answers if there is such a statement, or for as
// many as a message has room for.
func (d *deletions) deletePicked(ctx context.Context, pick, s stmt.Statement, v stmt.Values) (deleted int64, err error) {
	for {
		n, deleted, err := d.deletePickedOnce(ctx, pick, s, v)
		if !d.hasRefused(n, err) {
			return deleted, err
		}
	}
}

func (d *deletions) deletePickedOnce(ctx context.Context, pick, s stmt.Statement, v stmt.Values) (picked int, deleted int64, err error) {
	// READ COMMITTED, because InnoDB would otherwise lock every row and gap of the table that the statement passes,
	// other clients' included.
	_, err = d.pool.Run(ctx, readCommitted, func(tx *transaction.Tx) error {
		if pick.Text != "" {
			v.Keys, err = stmt.SelectTexts(ctx, tx, pick, v)
			picked = d.room.of(len(v.Keys))
			v.Keys = v.Keys[:picked]
			if d.dialect.PicksOrFails && len(v.Keys) > 0 && err == nil {
				v.Keys, err = d.pickAny(ctx, tx, v.Keys)
			}
			if err != nil || len(v.Keys) == 0 {
				return err
			}
		}
		deleted, err = stmt.Exec(ctx, tx, s, v)
		return err
	})
	return picked, deleted, err
}
