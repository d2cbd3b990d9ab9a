package locktable

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/stmtcache"
	"github.com/sqllock/sqllock/internal/transaction"
)

// A pool is the user's pool, with the statements that are kept prepared on its connections.
type pool struct {
	db       *sqlx.DB
	dialect  dialect.Dialect
	prepared *stmtcache.Cache // nil unless asked for
}

// on returns what runs statements in tx, or on any connection if it is nil.
func (p pool) on(tx *sqlx.Tx) sqlx.ExtContext {
	switch {
	case p.prepared != nil:
		return p.prepared.On(tx)
	case tx != nil:
		return tx
	default:
		return p.db
	}
}

// inTransaction runs fn in a transaction of its own and commits it, unless fn fails.
func (p pool) inTransaction(ctx context.Context, level sql.IsolationLevel, fn func(sqlx.ExtContext) error) error {
	tx, err := p.begin(ctx, level)
	if err != nil {
		return err
	}
	if err := fn(p.on(tx.Tx)); err != nil {
		// fn's error says more than that of a rollback, which a broken connection does
		// by itself.
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

func (p pool) begin(ctx context.Context, level sql.IsolationLevel) (*transaction.Tx, error) {
	if p.prepared != nil {
		p.prepared.PrepareMissed(ctx)
	}
	return transaction.Begin(ctx, p.db, &sql.TxOptions{Isolation: level}, p.dialect)
}

// An executor is what one statement runs on: a pool, a transaction or a connection.
type executor interface {
	sqlx.QueryerContext
	sqlx.ExecerContext
}

// once runs fn, which sends s, a statement that takes effect once, with the values that it
// is given. resent reports whether the statement may have been sent before: then a result of
// 0 rows does not say who did its work.
//
// database/sql sends a statement again on another connection if the driver reports the first
// one as bad. Drivers should do so only for what the server cannot have seen, but lib/pq also
// does it for a connection that breaks while it waits for the answer. On a connection that was
// taken from the pool database/sql sends a statement once, so here the second time is ours.
func (p pool) once(ctx context.Context, s statement, v values, fn func(executor, values) error) (resent bool, err error) {
	if p.prepared != nil && p.prepared.Keeps(ctx, s.text) {
		return p.oncePrepared(v, fn)
	}
	conn, err := p.db.Connx(ctx)
	if err != nil {
		return false, err
	}
	err = fn(conn, v)
	_ = conn.Close() // goes back to the pool; err says more
	if errors.Is(err, driver.ErrBadConn) {
		return true, fn(p.db, v)
	}
	return false, err
}

// oncePrepared is once for a statement that is prepared, and belongs to the pool: it counts how
// often database/sql converts an argument for the driver. (Of one that is not prepared it may
// convert the arguments twice and send it once: see driver.ErrSkip.)
func (p pool) oncePrepared(v values, fn func(executor, values) error) (resent bool, err error) {
	v.sends = new(int)
	err = fn(p.on(nil), v)
	return *v.sends > 1, err
}
