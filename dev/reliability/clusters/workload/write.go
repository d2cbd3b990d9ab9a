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
	"github.com/sqllock/sqllock/dev/reliability/clusters/history"
)

// writeLimit limits a transaction of the application. A driver may not notice that its server is
// away.
const writeLimit = 8 * time.Second

// guard guards a transaction, which then waits before it writes.
func (v *visit) guard(ctx context.Context, tx *sqlx.Tx, wait time.Duration) error {
	guard := v.lease.Guard
	if v.Config.Unaware {
		guard = func(ctx context.Context, tx sqllock.Tx) error { return PlainGuard(ctx, v.lease, tx) }
	}
	err := guard(ctx, tx)
	if err == nil {
		pause(ctx, wait)
	}
	return err
}

// write runs a transaction of the application, guarded or as one does that trusts the lease. An error is
// no violation, for nothing is acknowledged then.
func (v *visit) write(ctx context.Context, guarded bool, wait time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, writeLimit)
	defer cancel()
	// The transaction ends by itself; the lease's end does not roll it back: Guard alone must
	// keep it out.
	finished := make(chan struct{})
	under := *v // this visit may go on with another lease meanwhile
	go func() { // lib/pq does not watch its context
		defer close(finished)
		under.transact(ctx, guarded, wait)
	}()
	select {
	case <-finished:
	case <-time.After(writeLimit + time.Second): // it is left behind
	}
}

// transact writes a row for each key of which the lease holds all, and notes the COMMIT. Tokens of other
// leases cannot be compared.
func (v *visit) transact(ctx context.Context, guarded bool, wait time.Duration) {
	tx, err := v.app.BeginTxx(ctx, &sql.TxOptions{})
	if err != nil {
		return
	}
	defer tx.Rollback() //nolint:errcheck // after Commit it does nothing
	if guarded && v.guard(ctx, tx, wait) != nil {
		return
	}
	var written []history.Event
	for _, h := range v.holds {
		if !h.IsWhole() {
			continue
		}
		e := history.Event{
			Op: history.Write, Key: h.Key, Lease: v.id, Token: v.lease.Token(), Guarded: guarded,
			ID: fmt.Sprintf("%s.%d", v.id, v.rows.Add(1)),
		}
		if insert(ctx, tx, e) != nil {
			return
		}
		written = append(written, e)
	}
	from := history.Now()
	err = tx.Commit()
	for _, e := range written {
		e.From = from
		v.add(e, err)
	}
}

// insert writes the row of an event, with what it sees of other holders if it is guarded.
func insert(ctx context.Context, tx *sqlx.Tx, e history.Event) error {
	var earlier, later int
	if e.Guarded {
		count := "SELECT COALESCE(SUM(token < ?), 0), COALESCE(SUM(token > ?), 0) FROM written WHERE name = ? AND guarded = TRUE"
		if tx.DriverName() != "mysql" {
			count = "SELECT COUNT(*) FILTER (WHERE token < ?), COUNT(*) FILTER (WHERE token > ?) FROM written WHERE name = ? AND guarded"
		}
		if err := tx.QueryRowContext(ctx, tx.Rebind(count), e.Token, e.Token, e.Key).Scan(&earlier, &later); err != nil {
			return err
		}
	}
	_, err := tx.ExecContext(ctx, tx.Rebind("INSERT INTO written (id, name, token, guarded, earlier, later) VALUES (?, ?, ?, ?, ?, ?)"),
		e.ID, e.Key, e.Token, e.Guarded, earlier, later)
	return err
}

// PlainGuard is Guard as a single server needs it: a share lock on the row, which is in no write
// set.
func PlainGuard(ctx context.Context, lease *sqllock.Lease, tx sqllock.Tx) error {
	if lease.Context().Err() != nil {
		return sqllock.ErrLockLost
	}
	rows, err := tx.QueryContext(ctx, "SELECT 1 FROM INT_LOCK WHERE CLIENT_ID = ? AND EXPIRED_AFTER >= UTC_TIMESTAMP(6) LOCK IN SHARE MODE", lease.Holder())
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	if !rows.Next() {
		return errors.Join(rows.Err(), sql.ErrNoRows)
	}
	return rows.Err()
}
