package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/bounded"
)

// A Tx is an open transaction: a [*sql.Tx] or a [*sqlx.Tx].
type Tx interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	Commit() error
	Rollback() error
}

// Guard makes a transaction of the caller's commit only under this lease: it looks,
// inside tx, whether the lock's row still carries the lease, and pins the row until
// tx ends. Until then nobody can take the lock over, however long tx lasts and even
// if the lease ends meanwhile: not sqllock, not Spring, not a DELETE by hand. So
// what tx writes is on disk before the next holder begins. No other store of locks
// can promise that; it takes a lock that lives beside the data. tx must be one of the
// database, schema and prefix that the lock is in, but may be of another pool.
//
// Call Guard once in a transaction, first if that can be; [Registry.ExecuteLockedTx]
// does all of it. Any number of transactions may be guarded by one lease at a time.
// What is promised, at which isolation of tx:
//
//   - READ COMMITTED (PostgreSQL's default): tx commits only if the lease was held
//     when Guard returned, and then before anyone else holds the lock. This covers
//     what tx wrote before Guard, too.
//   - REPEATABLE READ and SERIALIZABLE: the same. tx must have begun after Lock: an
//     older snapshot does not know the lease. On PostgreSQL that gives an [ErrInvalid],
//     or a serialization failure (40001) if the row was renewed after the snapshot was
//     taken: then try tx again. On MySQL (REPEATABLE READ is its default) Guard cannot
//     see how old the snapshot is, and what tx read before Lock may be out of date.
//   - SQLite, always serializable: Guard writes, so that it begins the one write
//     transaction that the database can have. Others wait until tx ends, the
//     renewal of leases in the same file too: keep tx shorter than TTL / 2.
//
// While the row is pinned the lease cannot be renewed. If it ends before tx, its
// context does, with [ErrLockLost], and tx may still be committed. What was done
// outside of the database has no such protection: that is what Token is for.
//
// Guard returns [ErrLockLost] if the lease is lost, [ErrNotHeld] after Unlock, and an
// [ErrDatabase] if the statement failed. After any error roll tx back: on MySQL a Guard
// that was refused may have the next holder's row locked until then. ctx, or the
// Deadline if that is earlier, bounds the call.
func (l *Lease) Guard(ctx context.Context, tx Tx) error {
	if err := l.alive(); err != nil {
		return err
	}
	return l.hold.guard(ctx, tx)
}

func (h *hold) guard(ctx context.Context, tx Tx) error {
	h.mu.Lock()
	h.guarded = true // the row must not be handed on while the transaction may be open
	h.mu.Unlock()
	if err := h.alive(); err != nil {
		return err
	}
	limited, cancel := context.WithDeadline(ctx, h.deadline())
	defer cancel()
	repository := h.registry.repository
	pinned, err := answered(limited, "guard", h.key(), func() (bool, error) {
		return repository.guard(limited, tx, h.key(), h.holder, h.ttl)
	})
	// The row was there then, and the lease has not ended since: so it had not
	// expired either, whatever the statement had to wait for.
	if lost := h.alive(); lost != nil {
		return lost
	}
	if err != nil || pinned {
		return err
	}
	// The transaction does not see the row. Is it gone, or newer than tx?
	held, err := repository.IsAcquired(limited, h.key(), h.holder, h.ttl)
	switch {
	case err != nil:
		return err
	case held:
		return invalid("guard %q: the transaction's snapshot is older than the lease: begin it after Lock", h.key())
	default:
		h.finish(ErrLockLost)
		return h.lost()
	}
}

// guard pins the row of key, if it carries the holder, in a transaction of the
// user's.
func (r *Repository) guard(ctx context.Context, tx Tx, key, holder string, ttl time.Duration) (pinned bool, err error) {
	p, err := r.params(key, holder, ttl)
	if err != nil {
		return false, err
	}
	var one int
	s := r.statements.guard
	err = tx.QueryRowContext(ctx, s.text, s.args(p)...).Scan(&one)
	if errors.Is(err, sql.ErrNoRows) {
		return false, nil
	}
	if r.isBlocked(err) { // somebody is changing it, for longer than the session waits
		return false, fmt.Errorf("%w: guard %q: %w", ErrDatabase, key, err)
	}
	return err == nil, r.trouble(ctx, "guard", key, err)
}

// ExecuteLockedTx runs fn in a transaction of db that can commit only under the lock
// of key: it waits for the lock, begins a transaction, guards it (see [Lease.Guard]),
// runs fn, commits, and releases the lock. fn's context is that of the lease, and is
// the transaction's too: if the lease is lost meanwhile, the transaction is rolled
// back. fn must not end tx.
//
// It returns nil exactly if the transaction was committed. A release that fails then is
// no error: the row ends by itself. Otherwise nothing was committed, unless the
// error is an [ErrDatabase] of the commit itself, whose answer may have been lost: once
// COMMIT was sent, every error is one, also if ctx ended meanwhile, except for a refusal of
// the database. The error is fn's, or says with [ErrLockLost], [ErrNotAcquired] or
// [ErrDatabase] what came between. If fn panics the transaction is rolled back and the
// lock is released.
//
// db is a pool of the database that the lock is in. That should be the
// application's, while the registry has a small one of its own.
func (r *Registry) ExecuteLockedTx(ctx context.Context, key string, db *sqlx.DB, fn func(context.Context, *sqlx.Tx) error) error {
	if db == nil {
		return invalid("a transaction needs a database")
	}
	committed := false
	err := r.ExecuteLocked(ctx, key, func(ctx context.Context) error {
		err := r.transact(ctx, key, db, fn)
		committed = err == nil
		return err
	})
	if committed {
		return nil
	}
	return err
}

// transact runs fn in a guarded transaction, under a context that carries the lease.
func (r *Registry) transact(ctx context.Context, key string, db *sqlx.DB, fn func(context.Context, *sqlx.Tx) error) error {
	// ctx ends the transaction only until COMMIT is sent. A driver that looks at the
	// context would cut the COMMIT short, and return what reads as if none had been sent.
	life, end := context.WithCancelCause(context.WithoutCancel(ctx))
	defer end(nil)
	detach := context.AfterFunc(ctx, func() { end(context.Cause(ctx)) })
	tx, err := bounded.Do(ctx, grace, func() (*sqlx.Tx, error) { return db.BeginTxx(life, nil) }, rollBack)
	if err != nil {
		return r.repository.trouble(ctx, "begin a transaction under", key, err)
	}
	// Not every driver looks at a context while it waits for an answer to the end of
	// a transaction.
	defer func() { // after Commit it does nothing
		_, _ = answered(ctx, "roll back under", key, func() (struct{}, error) { return struct{}{}, tx.Rollback() })
	}()
	lease, err := r.LeaseFrom(ctx, key)
	if err != nil {
		return err
	}
	if err := lease.Guard(ctx, tx); err != nil {
		return err
	}
	if err := fn(ctx, tx); err != nil {
		return err
	}
	if ctx.Err() != nil || !detach() {
		return r.repository.trouble(ctx, "commit under", key, sql.ErrTxDone)
	}
	return r.commit(ctx, key, tx)
}

// commit commits tx. If that fails, the outcome is unknown, whatever has become of ctx,
// unless the database refused it.
func (r *Registry) commit(ctx context.Context, key string, tx *sqlx.Tx) error {
	_, err := answered(ctx, "commit under", key, func() (struct{}, error) { return struct{}{}, tx.Commit() })
	switch {
	case r.repository.isRefusal(err):
		return r.repository.trouble(ctx, "commit under", key, err)
	case errors.Is(err, bounded.ErrNoAnswer):
		return err
	default:
		return r.repository.trouble(context.WithoutCancel(ctx), "commit under", key, err)
	}
}

// rollBack ends a transaction that was begun too late.
func rollBack(tx *sqlx.Tx, err error) {
	if err == nil {
		_ = tx.Rollback()
	}
}
