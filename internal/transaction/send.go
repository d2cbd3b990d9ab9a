package transaction

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

// Send runs fn, which sends what is a transaction by itself: one statement, or one message with
// BEGIN and COMMIT in it, as [OnConn] does. If fn fails, its transaction is not left open: it is rolled
// back, or the connection is closed.
func Send(ctx context.Context, db *sqlx.DB, d dialect.Dialect, fn func(*sqlx.Conn) error) (resent bool, err error) {
	return onConn(ctx, db, d, fn, isOver)
}

// isOver is the rule for a connection on which what is a transaction by itself has ended with err.
func isOver(ctx context.Context, conn *sqlx.Conn, d dialect.Dialect, err error) bool {
	return err == nil || d.IsOver(err) || isStopped(d.Classify(err)) && rolledBack(ctx, conn)
}

// isStopped reports whether the server has refused a statement of a message, and left its transaction open.
func isStopped(class dialect.Class) bool { return class == dialect.Blocked || class == dialect.Refused }

// rolledBack ends the transaction of a message whose statement was refused, or has waited for a row in
// vain, and reports whether it is over. Lost races end the transaction by themselves.
func rolledBack(ctx context.Context, conn *sqlx.Conn) bool {
	_, err := conn.ExecContext(ctx, "ROLLBACK")
	return err == nil
}
