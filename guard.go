package sqllock

import (
	"context"
	"database/sql"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/transaction"
)

// A Tx is an open transaction: a [*sql.Tx] or a [*sqlx.Tx].
type Tx interface {
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
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
// members of a replication group accept writes they refuse a tx that is SERIALIZABLE (3098).
//
// While the row is pinned the lease cannot be renewed. If it ends before tx, its context
// ends with [ErrLockLost], and tx may still be committed. Work outside of the database has
// no such protection: that is what Token is for.
//
// Guard returns [ErrLockLost] if the lease is lost, [ErrNotHeld] after Unlock, and an
// [ErrDatabase] if the statement failed. After any error roll tx back: on MySQL a Guard
// that was refused may have the next holder's row locked until then. ctx, or the Deadline
// if that is earlier, limits the call.
func (l *Lease) Guard(ctx context.Context, tx Tx) error {
	if err := l.alive(); err != nil {
		return err
	}
	return l.hold.guard(ctx, tx)
}

func (h *hold) guard(ctx context.Context, tx Tx) error {
	h.mu.Lock()
	h.guarded = true // the row must not be handed over while the transaction may be open
	h.mu.Unlock()
	if err := h.alive(); err != nil {
		return err
	}
	limited, cancel := context.WithDeadline(ctx, h.deadline())
	defer cancel()
	got, err := h.config.table.Guard(limited, tx, h.claim())
	// The row was there then, and the lease has not ended since: so it had not expired
	// either, whatever the statement had to wait for.
	if lost := h.alive(); lost != nil {
		return lost
	}
	switch {
	case err != nil:
		return kinded(ctx, failure(err, h.key))
	case got == locktable.StaleSnapshot:
		return invalid("guard %q: the transaction's snapshot is older than the lease: begin it after Lock", h.key)
	case got == locktable.NotHeld:
		h.finish(ErrLockLost)
		return h.lost()
	default:
		return nil
	}
}

// ExecuteLockedTx runs fn in a transaction of db that can commit only under the lock: it
// waits for the lock, begins a transaction, guards it (see [Lease.Guard]), runs fn,
// commits, and releases the lock. opts are those of the transaction, and may be nil. fn's
// context is that of the lease, and is the transaction's too: if the lease is lost
// meanwhile, the transaction is rolled back. fn must not end tx.
//
// ExecuteLockedTx returns nil exactly if the transaction was committed. A release that
// fails then is no error: the row expires. Otherwise nothing was committed, with one
// exception: an [ErrDatabase] of the commit itself, whose answer may have been lost. Once
// COMMIT was sent, every error is an ErrDatabase, also if ctx ended meanwhile, except for a
// refusal of the database.
//
// The error is fn's, or says with [ErrLockLost], [ErrNotAcquired] or [ErrDatabase] what
// came between. If fn panics the transaction is rolled back and the lock is released.
//
// db is a pool of the database that the lock is in. That should be the application's,
// while the registry has a small one of its own.
func (l *JdbcLock) ExecuteLockedTx(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions, fn func(context.Context, *sqlx.Tx) error) error {
	if db == nil {
		return errNoDatabase()
	}
	lease, err := l.Lock(ctx)
	return executeTx(ctx, lease, err, db, opts, fn)
}

// ExecuteLockedTxFor is ExecuteLockedTx with a limit to the wait for the lock, after which
// it returns [ErrNotAcquired] without having begun a transaction. 0 means a single try.
func (l *JdbcLock) ExecuteLockedTxFor(ctx context.Context, wait time.Duration, db *sqlx.DB, opts *sql.TxOptions, fn func(context.Context, *sqlx.Tx) error) error {
	if db == nil {
		return errNoDatabase()
	}
	lease, err := l.TryLockFor(ctx, wait)
	return executeTx(ctx, lease, err, db, opts, fn)
}

func errNoDatabase() error { return invalid("a transaction needs a database") }

// executeTx runs fn in a guarded transaction under a lease, and releases it.
func executeTx(ctx context.Context, lease *Lease, err error, db *sqlx.DB, opts *sql.TxOptions, fn func(context.Context, *sqlx.Tx) error) error {
	committed := false
	err = execute(ctx, lease, err, func(ctx context.Context) error {
		err := lease.transact(ctx, db, opts, fn)
		committed = err == nil
		return err
	})
	if committed {
		return nil
	}
	return err
}

// transact runs fn in a guarded transaction. ctx is the context of l.
func (l *Lease) transact(ctx context.Context, db *sqlx.DB, opts *sql.TxOptions, fn func(context.Context, *sqlx.Tx) error) error {
	// ctx ends the transaction only until COMMIT is sent. A driver that watches the
	// context would cut the COMMIT short, and return what reads as if none had been sent.
	txCtx, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	detach := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	tx, err := l.beginGuarded(ctx, txCtx, db, opts)
	if err != nil {
		return err
	}
	defer rollBack(ctx, tx) // after Commit it does nothing
	if err := fn(ctx, tx.Tx); err != nil {
		return err
	}
	if ctx.Err() != nil || !detach() {
		return l.explain(ctx, "commit under", sql.ErrTxDone)
	}
	return l.commit(ctx, tx)
}

// guardRaces is how often a transaction whose Guard has lost a race is begun again. Nothing has
// happened in it yet.
const guardRaces = 10

// beginGuarded begins a transaction that lasts as long as txCtx, and guards it. ctx is the
// context of l.
func (l *Lease) beginGuarded(ctx, txCtx context.Context, db *sqlx.DB, opts *sql.TxOptions) (*transaction.Tx, error) {
	for races := 0; ; races++ {
		tx, err := bounded.Do(ctx, bounded.Grace, func() (*transaction.Tx, error) {
			return l.hold.config.table.Begin(txCtx, db, opts)
		}, rollBackLate)
		if err != nil {
			return nil, l.explain(ctx, "begin a transaction under", err)
		}
		if err = l.Guard(ctx, tx); err == nil {
			return tx, nil
		}
		rollBack(ctx, tx)
		if races == guardRaces || !locktable.Is(err, locktable.Race) {
			return nil, err
		}
	}
}

// rollBack rolls tx back. Not every driver watches a context while it waits for an answer to
// the end of a transaction.
func rollBack(ctx context.Context, tx *transaction.Tx) {
	_, _ = bounded.Do(ctx, bounded.Grace, func() (struct{}, error) { return struct{}{}, tx.Rollback() }, nil)
}

// commit commits tx. If that fails the outcome is unknown, whatever has become of ctx,
// unless the database refused it.
func (l *Lease) commit(ctx context.Context, tx *transaction.Tx) error {
	_, err := bounded.Do(ctx, bounded.Grace, func() (struct{}, error) { return struct{}{}, tx.Commit() }, nil)
	if !l.hold.config.table.IsRefusal(err) {
		ctx = context.WithoutCancel(ctx) // its end does not explain the error
	}
	return l.explain(ctx, "commit under", err)
}

// explain makes an error of this package of one of the caller's pool.
func (l *Lease) explain(ctx context.Context, op string, err error) error {
	return failure(l.hold.config.table.Explain(ctx, op, err), l.key)
}

// rollBackLate ends a transaction that was begun when the caller had gone.
func rollBackLate(tx *transaction.Tx, err error) {
	if err == nil {
		_ = tx.Rollback()
	}
}
