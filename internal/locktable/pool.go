package locktable

import (
	"context"
	"database/sql"
	"reflect"
	"strings"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/transaction"
)

// A pool is the user's pool.
type pool struct {
	db      *sqlx.DB
	dialect dialect.Dialect
}

// inTransaction runs fn in a transaction of its own and commits it, unless fn fails.
func (p pool) inTransaction(ctx context.Context, level sql.IsolationLevel, fn func(sqlx.ExtContext) error) error {
	tx, err := p.begin(ctx, level)
	if err != nil {
		return err
	}
	if err := fn(tx.Tx); err != nil {
		// fn's error says more than that of a rollback, which a broken connection does
		// by itself.
		_ = tx.Rollback()
		return err
	}
	return tx.Commit()
}

func (p pool) begin(ctx context.Context, level sql.IsolationLevel) (*transaction.Tx, error) {
	return transaction.Begin(ctx, p.db, &sql.TxOptions{Isolation: level}, p.dialect)
}

// An executor is what one statement runs on: a pool, a transaction or a connection.
type executor interface {
	sqlx.QueryerContext
	sqlx.ExecerContext
}

// send runs fn, which sends statements, on a connection. If the server has closed that, as after a
// restart, it runs fn on another one. resent reports whether statements may have been sent before:
// then a result of 0 rows does not say who did the work of a statement that takes effect once.
func (p pool) send(ctx context.Context, fn func(executor) error) (resent bool, err error) {
	return transaction.OnConn(ctx, p.db, p.dialect, func(conn *sqlx.Conn) error { return fn(conn) })
}

// sendAlone is send for statements that must be committed by themselves. If the application has left a
// transaction open on the connection, which would undo them, it is closed, and fn runs on another one.
func (p pool) sendAlone(ctx context.Context, fn func(executor) error) (resent bool, err error) {
	if p.dialect.Outside == "" || p.discardsOpen() {
		return p.send(ctx, fn)
	}
	return p.send(ctx, func(db executor) error {
		_, err := db.ExecContext(ctx, p.dialect.Outside)
		if class := p.dialect.Classify(err); class == dialect.Stuck || class == dialect.Closed {
			return err
		}
		return fn(db) // if it is for another reason, this fails as well
	})
}

// discardsOpen reports whether database/sql gives out no connection in an open transaction: pgx asks its
// connections for that.
func (p pool) discardsOpen() bool {
	driver := reflect.TypeOf(p.db.Driver())
	return driver != nil && driver.Kind() == reflect.Pointer && strings.HasPrefix(driver.Elem().PkgPath(), "github.com/jackc/pgx/")
}

// ask returns what fn returns, which sends statements that may be repeated, as pool.send does.
func ask[T any](ctx context.Context, p pool, fn func(executor) (T, error)) (answer T, err error) {
	_, err = p.send(ctx, func(db executor) (err error) {
		answer, err = fn(db)
		return err
	})
	return answer, err
}
