package sqllock

import (
	"context"
	"database/sql"
	"time"

	"github.com/sqllock/sqllock/internal/locktable"
)

// A Tx is an open transaction over database/sql: a [*sql.Tx], a [*sqlx.Tx] or that of another
// library. Guard only sends statements in it.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	Commit() error
	Rollback() error
}

// Guard makes a transaction of the caller's commit only under this lease. It checks, inside tx, that the lock's row still
// carries the lease, and pins the row until tx ends. Until then no other holder can take the lock over, even if the lease
// ends meanwhile: not sqllock, not Spring, not a DELETE by hand. So what tx writes is committed before the next holder starts.
// tx must be one of the database, schema and prefix that the lock is in, but may be of another pool. [GuardFunc] guards a
// pgx.Tx.
//
// Call Guard once in a transaction, first if possible; [Registry.ExecuteLockedTx] does all of it. Any number of transactions
// may be guarded by one lease at a time.
//
//   - Begin tx with a context that does not end with the lease: a COMMIT that its context interrupts may return nil over lib/pq,
//     although nothing is committed, or a standby does not have it. Nor should statement_timeout or pg_cancel_backend end it.
//   - At REPEATABLE READ and SERIALIZABLE tx must have begun after Lock, because an older snapshot does not show the lease. On
//     PostgreSQL that is an [ErrInvalid]. If the row was renewed after the snapshot was taken, Guard returns an [ErrDatabase]
//     (40001, on MariaDB 1020): try tx again. MySQL, and MariaDB without innodb_snapshot_isolation, cannot tell: what tx read
//     before Lock may be out of date.
//   - On SQLite Guard begins the one write transaction that the database can have. Others wait until tx ends, also renewals: keep
//     tx shorter than TTL / 2.
//   - Call Guard in the transaction itself, not in a nested one. A ROLLBACK TO that savepoint undoes the guard; on a single MySQL or
//     MariaDB if the savepoint came before the first statement on a table. Then call Guard again, or roll back all of tx.
//   - On Galera and in a replication group of MySQL, Guard changes CREATED_DATE in the row, by the smallest step that the column
//     keeps. If another node has taken the lock over, the cluster aborts tx, or it refuses to commit tx (1213, 3101 or 1180).
//     Guard detects a cluster by itself: until it has found one, it asks the server of tx once a minute. docs/leases.md has what
//     tx must do there.
//
// While the row is pinned the lease cannot be renewed. If it ends before tx, its context
// ends with [ErrLockLost], and tx may still be committed. Work outside of the database has
// no such protection: use [Lease.Token] for it. Unless NoRenew is set, a Guard that comes when a
// renewal is overdue first renews the lease, by a statement of the registry's own: it waits
// up to a fifteenth of TTL for that, and a second at most. So transactions that follow one
// another lose no lease if each is shorter than TTL / 2, however many leases there are.
//
// Guard returns [ErrLockLost] if the lease is lost, [ErrNotHeld] after Unlock, and an [ErrDatabase] if the statement failed.
// After any error roll tx back at once: a Guard that had to wait, and is refused, has the next holder's row locked until then, so
// that the next holder cannot renew it. ctx, or the Deadline after such a renewal if that is earlier, limits the call.
func (l *Lease) Guard(ctx context.Context, tx Tx) error {
	return l.held().Guard(ctx, locktable.OverSQL(tx))
}

// GuardFunc is [Lease.Guard] for a transaction that is not one of database/sql, but can be
// queried for a row, as a pgx.Tx on PostgreSQL can:
//
//	err := sqllock.GuardFunc(ctx, lease, tx.QueryRow)
//
// queryRow must be the method of the transaction: that of a pool or a connection guards nothing, and GuardFunc cannot
// detect that. If there is no row, Scan must return an error that wraps [sql.ErrNoRows]. On MySQL and MariaDB, where a guard
// may have to change the row, GuardFunc returns [ErrInvalid].
func GuardFunc[R interface{ Scan(dest ...any) error }](ctx context.Context, lease *Lease, queryRow func(ctx context.Context, query string, args ...any) R) error {
	if queryRow == nil {
		return lease.held().Guard(ctx, nil)
	}
	return lease.held().Guard(ctx, locktable.OverRows(func(ctx context.Context, query string, args ...any) locktable.Scanner {
		return queryRow(ctx, query, args...)
	}))
}

// ExecuteLockedTx runs fn in a transaction of db that can commit only under the lock: it
// waits for the lock, begins a transaction, guards it (see [Lease.Guard]), runs fn,
// commits, and releases the lock. opts are those of the transaction, and may be nil. fn's
// context is that of the lease, and is the transaction's too: if the lease is lost
// meanwhile, the transaction is rolled back. fn must not end tx. If fn enters the lock again, the lease is
// not renewed: tx has its row pinned. If fn panics the transaction is rolled back and the lock is released.
//
// ExecuteLockedTx returns nil exactly if the transaction was committed. The error is fn's, or an [ErrLockLost],
// [ErrNotAcquired] or [ErrDatabase]. Nothing was committed then, with one exception: an ErrDatabase of the commit itself,
// whose answer may have been lost. Once COMMIT was sent, every error is an ErrDatabase, also if ctx ended meanwhile, except
// for a refusal of the database. A release that fails after the commit is no error: the row expires.
//
// db is a pool of the database that the lock is in. That should be the application's, while the registry has a small one of
// its own.
func (l *JdbcLock) ExecuteLockedTx(ctx context.Context, db *sql.DB, opts *sql.TxOptions, fn func(context.Context, *sql.Tx) error) error {
	if err := checkTransaction(db, fn); err != nil {
		return err
	}
	lease, err := l.Lock(ctx)
	return executeTx(ctx, lease, err, db, opts, fn)
}

// ExecuteLockedTxFor is ExecuteLockedTx with a limit to the wait for the lock, after which
// it returns [ErrNotAcquired] without having begun a transaction. 0 means a single try.
func (l *JdbcLock) ExecuteLockedTxFor(ctx context.Context, wait time.Duration, db *sql.DB, opts *sql.TxOptions, fn func(context.Context, *sql.Tx) error) error {
	if err := checkTransaction(db, fn); err != nil {
		return err
	}
	lease, err := l.TryLockFor(ctx, wait)
	return executeTx(ctx, lease, err, db, opts, fn)
}

// checkTransaction checks what a guarded transaction needs, before the lock is acquired.
func checkTransaction(db *sql.DB, fn func(context.Context, *sql.Tx) error) error {
	if db == nil {
		return invalid("a transaction needs a database")
	}
	if fn == nil {
		return errNoFunction()
	}
	return nil
}

// executeTx runs fn in a guarded transaction under a lease, and releases it.
func executeTx(ctx context.Context, lease *Lease, err error, db *sql.DB, opts *sql.TxOptions, fn func(context.Context, *sql.Tx) error) error {
	committed := false
	err = execute(ctx, lease, err, func(ctx context.Context) error {
		err := lease.use.Transact(ctx, db, opts, fn)
		committed = err == nil
		return err
	})
	if committed {
		return nil
	}
	return err
}
