package sqllock

import (
	"context"
	"database/sql"
	"reflect"

	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/observe"
)

// A Tx is an open transaction over database/sql: a [*sql.Tx], a [*sqlx.Tx] or that of another
// library. Guard only sends statements in it.
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	Commit() error
	Rollback() error
}

// Guard makes a transaction of the caller's commit only under this lease. It checks,
// inside tx, that the lock's row still carries the lease, and pins the row until tx ends.
// Until then no other holder can take the lock over, however long tx lasts and even if
// the lease ends meanwhile: not sqllock, not Spring, not a DELETE by hand. So what tx
// writes is on disk before the next holder starts. It takes a lock that lives beside the
// data to promise that. tx must be one of the database, schema and prefix that the lock is
// in, but may be of another pool.
//
// A transaction that is not one of database/sql, such as a pgx.Tx, is guarded by [GuardFunc].
//
// Call Guard once in a transaction, first if possible; [Registry.ExecuteLockedTx] does all
// of it. Any number of transactions may be guarded by one lease at a time. The promise
// depends on the isolation of tx:
//
//   - READ COMMITTED (PostgreSQL's default): tx commits only if the lease was held when
//     Guard returned, and then before anyone else holds the lock. This covers what tx
//     wrote before Guard, too.
//   - REPEATABLE READ and SERIALIZABLE: the same. tx must have begun after Lock, because
//     an older snapshot does not show the lease. On PostgreSQL that gives an [ErrInvalid],
//     or a serialization failure (40001) if the row was renewed after the snapshot was
//     taken: then try tx again. On MySQL (REPEATABLE READ is its default) Guard cannot
//     see how old the snapshot is, and what tx read before Lock may be out of date.
//   - SQLite, always serializable: Guard writes, so that it begins the one write
//     transaction that the database can have. Others wait until tx ends, also the
//     renewal of leases in the same file: keep tx shorter than TTL / 2.
//
// On a Galera cluster or in a replication group of MySQL, Guard changes CREATED_DATE in the row by
// a microsecond, or by the smallest step that the column keeps. Such a cluster compares the rows
// that transactions have changed: if another node has taken the lock over meanwhile, it refuses to
// commit tx (1213, 3101 or 1180), or aborts it before. A single server makes the other process wait
// instead. Transactions that are guarded by one lease take turns there; on different nodes all but
// one are refused. A renewal, or an Unlock, on another node than tx's aborts tx. So give the
// registry and tx the same node. tx must not be read-only there, its user needs UPDATE on the
// table, and transactions that guard several leases must do so in one order. Guard notices a
// cluster by itself: until it has found one, it asks the server of tx once a minute. Where several
// members of a replication group accept writes they refuse a tx that is SERIALIZABLE (3098). On Galera
// the DSN of tx needs interpolateParams=true: with prepared statements a node of MariaDB may abort tx
// without an error, and commit what follows without Guard (docs/clusters.md has figures).
//
// Begin tx with a context that does not end with the lease. Over lib/pq, Commit of a transaction that was
// begun with Context returns nil if the lease ends while the server's answer to COMMIT is awaited, although
// nothing may be committed. [Registry.ExecuteLockedTx] sees to that.
//
// Call Guard in the transaction itself, not in a nested one, which is a savepoint: on PostgreSQL and on
// clusters a ROLLBACK TO that savepoint undoes the guard, and the outer transaction could still commit.
//
// PostgreSQL answers a COMMIT whose wait for a synchronous standby is cancelled with success and a warning,
// and a failover undoes it. lib/pq cancels it when the context ends with which tx was begun, such as
// [Lease.Context], and tx.Commit returns nil. So begin tx with a context that does not end while it
// commits, or use [Registry.ExecuteLockedTx], which takes care of that. Nor should statement_timeout or
// pg_cancel_backend end a COMMIT: no driver makes an error of the warning.
//
// While the row is pinned the lease cannot be renewed. If it ends before tx, its context
// ends with [ErrLockLost], and tx may still be committed. Work outside of the database has
// no such protection: that is what Token is for. With AutoRenew, a Guard that comes when a renewal is
// overdue first renews the lease, by a statement of the registry's own: it waits up to a fifteenth of TTL
// for that, and a second at most. So transactions that follow one another lose no lease if each
// is shorter than TTL / 2, however many leases there are.
//
// Guard returns [ErrLockLost] if the lease is lost, [ErrNotHeld] after Unlock, and an
// [ErrDatabase] if the statement failed. After any error roll tx back: on MySQL a Guard
// that was refused may have the next holder's row locked until then. ctx, or the Deadline
// after such a renewal if that is earlier, limits the call.
func (l *Lease) Guard(ctx context.Context, tx Tx) error {
	if err := l.alive(); err != nil {
		return err
	}
	if isNil(tx) {
		return invalid("guard: there is no transaction")
	}
	return l.hold.guard(ctx, func(ctx context.Context) (locktable.GuardResult, error) {
		return l.hold.config.table.Guard(ctx, tx, l.hold.claim())
	})
}

// GuardFunc is [Lease.Guard] for a transaction that is not one of database/sql, but can be
// queried for a row, as a pgx.Tx on PostgreSQL can:
//
//	err := sqllock.GuardFunc(ctx, lease, tx.QueryRow)
//
// queryRow sends a query in the transaction and returns its first row. It must be the method of the
// transaction: that of a pool or a connection guards nothing, and GuardFunc cannot notice. If there is
// no row, Scan must return an error that wraps [sql.ErrNoRows], as that of pgx v5 does. What Guard
// promises and returns is the same. On MySQL and MariaDB, where a guard may have to change the row,
// GuardFunc returns [ErrInvalid].
//
// It is a function and no method because only functions can take a queryRow of any type of row.
func GuardFunc[R interface{ Scan(dest ...any) error }](ctx context.Context, lease *Lease, queryRow func(ctx context.Context, query string, args ...any) R) error {
	if err := lease.alive(); err != nil {
		return err
	}
	if queryRow == nil {
		return invalid("guard: there is no function that sends the query")
	}
	query := func(ctx context.Context, query string, args ...any) locktable.Scanner {
		return queryRow(ctx, query, args...)
	}
	return lease.hold.guard(ctx, func(ctx context.Context) (locktable.GuardResult, error) {
		return lease.hold.config.table.GuardFunc(ctx, query, lease.hold.claim())
	})
}

// isNil reports whether tx is nil, or a nil pointer.
func isNil(tx Tx) bool {
	v := reflect.ValueOf(tx)
	return !v.IsValid() || v.Kind() == reflect.Pointer && v.IsNil()
}

// guard has send pin the row of h inside a transaction.
func (h *hold) guard(ctx context.Context, send func(context.Context) (locktable.GuardResult, error)) error {
	h.mu.Lock()
	h.guarded = true // the row must not be handed over while the transaction may be open
	h.mu.Unlock()
	if err := h.alive(); err != nil {
		return err
	}
	h.config.renewOverdue(ctx, h)
	limited, cancel := context.WithDeadline(ctx, h.deadline())
	defer cancel()
	got, err := send(limited)
	// The row was there then, and the lease has not ended since: so it had not expired
	// either, whatever the statement had to wait for.
	if lost := h.alive(); lost != nil {
		return lost
	}
	switch {
	case err != nil:
		return kinded(ctx, failure(err, h.key))
	case got == locktable.StaleSnapshot:
		return invalid("guard %q: the transaction does not see the lease: begin it after Lock, in the database of the lock", h.key)
	case got == locktable.NotHeld:
		h.finish(observe.EndTaken, nil)
		return h.lost()
	default:
		return nil
	}
}
