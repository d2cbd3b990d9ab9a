//go:build linux

package workload

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/reliability/clusters/history"
)

// writeLimit limits a transaction of the application. A driver may not notice that its server is
// away.
const writeLimit = 8 * time.Second

// guarded writes a row in a transaction that is guarded. The transaction waits before it writes.
func (v *visit) guarded(ctx context.Context, wait time.Duration) {
	v.write(ctx, true, func(ctx context.Context, tx *sqlx.Tx, id string) error {
		guard := v.lease.Guard
		if v.Config.Unaware {
			guard = v.plainGuard
		}
		if err := guard(ctx, tx); err != nil {
			return err
		}
		pause(ctx, wait)
		var earlier, later int
		count := tx.Rebind("SELECT COALESCE(SUM(token < ?), 0), COALESCE(SUM(token > ?), 0) FROM written WHERE name = ? AND guarded = TRUE")
		if v.Config.Target.Driver != "mysql" {
			count = tx.Rebind("SELECT COUNT(*) FILTER (WHERE token < ?), COUNT(*) FILTER (WHERE token > ?) FROM written WHERE name = ? AND guarded")
		}
		if err := tx.QueryRowContext(ctx, count, v.lease.Token(), v.lease.Token(), v.key).Scan(&earlier, &later); err != nil {
			return err
		}
		return v.insert(ctx, tx, id, true, earlier, later)
	})
}

// unguarded writes a row as an application does that trusts the lease.
func (v *visit) unguarded(ctx context.Context) {
	v.write(ctx, false, func(ctx context.Context, tx *sqlx.Tx, id string) error {
		return v.insert(ctx, tx, id, false, 0, 0)
	})
}

func (v *visit) insert(ctx context.Context, tx *sqlx.Tx, id string, guarded bool, earlier, later int) error {
	_, err := tx.ExecContext(ctx, tx.Rebind("INSERT INTO written (id, name, token, guarded, earlier, later) VALUES (?, ?, ?, ?, ?, ?)"),
		id, v.key, v.lease.Token(), guarded, earlier, later)
	return err
}

// plainGuard is Guard as a single server needs it: a share lock on the row, which is in no write
// set.
func (v *visit) plainGuard(ctx context.Context, tx sqllock.Tx) error {
	if v.lease.Context().Err() != nil {
		return sqllock.ErrLockLost
	}
	rows, err := tx.QueryContext(ctx, "SELECT 1 FROM INT_LOCK WHERE CLIENT_ID = ? AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) LOCK IN SHARE MODE", v.lease.Holder())
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		return errors.Join(rows.Err(), sql.ErrNoRows)
	}
	return rows.Err()
}

// write runs a transaction of the application and notes its COMMIT. An error is no violation, for
// nothing is acknowledged then.
func (v *visit) write(ctx context.Context, guarded bool, do func(ctx context.Context, tx *sqlx.Tx, id string) error) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	// The transaction ends by itself; the lease's end does not roll it back: Guard alone must
	// keep it out.
	finished := make(chan struct{})
	go func() { // lib/pq does not watch its context
		defer close(finished)
		tx, err := v.app.BeginTxx(ctx, &sql.TxOptions{})
		if err != nil {
			return
		}
		defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
		id := fmt.Sprintf("%s.%d", v.id, v.rows.Add(1))
		if err := do(ctx, tx, id); err != nil {
			return
		}
		e := history.Event{Op: history.Write, Key: v.key, Lease: v.id, Token: v.lease.Token(), ID: id, Guarded: guarded, From: history.Now()}
		v.add(e, tx.Commit())
	}()
	select {
	case <-finished:
	case <-time.After(writeLimit + time.Second): // it is left behind
	}
}
