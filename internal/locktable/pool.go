package locktable

import (
	"context"
	"database/sql"
	"reflect"
	"strings"

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
// On a connection that was taken from the pool database/sql sends a statement once, so that the second
// time is ours.
func (p pool) once(ctx context.Context, s statement, v values, fn func(executor, values) error) (resent bool, err error) {
	if p.prepared != nil && p.prepared.Keeps(ctx, s.text) {
		if resent, err = p.oncePrepared(v, fn); !p.isUnusable(ctx, err) {
			return resent, err
		}
		resent = true
	}
	again, err := transaction.OnConn(ctx, p.db, p.dialect, func(conn *sqlx.Conn) error { return fn(conn, v) })
	return resent || again, err
}

// send runs fn, which sends statements that may be repeated. If the server has closed the connection, as
// after a restart, it runs fn on another one. resent reports whether statements may have been sent before.
func (p pool) send(ctx context.Context, fn func(executor) error) (resent bool, err error) {
	if p.prepared != nil {
		if err := fn(p.on(nil)); !p.isUnusable(ctx, err) {
			return false, err
		}
	}
	resent, err = transaction.OnConn(ctx, p.db, p.dialect, func(conn *sqlx.Conn) error { return fn(conn) })
	return resent || p.prepared != nil, err
}

// sendAlone is send for statements that must be committed by themselves. If the application has left a
// transaction open on the connection, which would undo them, it is closed, and fn runs on another one.
func (p pool) sendAlone(ctx context.Context, fn func(executor) error) (resent bool, err error) {
	if p.dialect.Outside == "" || p.discardsOpen() {
		return p.send(ctx, fn)
	}
	return transaction.OnConn(ctx, p.db, p.dialect, func(conn *sqlx.Conn) error {
		_, err := conn.ExecContext(ctx, p.dialect.Outside)
		if class := p.dialect.Classify(err); class == dialect.Stuck || class == dialect.Closed {
			return err
		}
		return fn(conn) // if it is for another reason, this fails as well
	})
}

// discardsOpen reports whether database/sql gives out no connection in an open transaction: pgx asks its
// connections for that.
func (p pool) discardsOpen() bool {
	driver := reflect.TypeOf(p.db.Driver())
	return driver != nil && driver.Kind() == reflect.Pointer && strings.HasPrefix(driver.Elem().PkgPath(), "github.com/jackc/pgx/")
}

// isUnusable reports whether err means that the connection was closed, or is to be closed, and it is
// worthwhile to try another one.
func (p pool) isUnusable(ctx context.Context, err error) bool {
	if err == nil || ctx.Err() != nil {
		return false
	}
	class := p.dialect.Classify(err)
	return class == dialect.Closed || class == dialect.Stuck
}

// ask returns what fn returns, which sends statements that may be repeated, as pool.send does.
func ask[T any](ctx context.Context, p pool, fn func(executor) (T, error)) (answer T, err error) {
	_, err = p.send(ctx, func(db executor) (err error) {
		answer, err = fn(db)
		return err
	})
	return answer, err
}

// oncePrepared is once for a statement that is prepared, and belongs to the pool: it counts how
// often database/sql converts an argument for the driver. (Of one that is not prepared it may
// convert the arguments twice and send it once: see driver.ErrSkip.)
func (p pool) oncePrepared(v values, fn func(executor, values) error) (resent bool, err error) {
	v.sends = new(int)
	err = fn(p.on(nil), v)
	return *v.sends > 1, err
}
