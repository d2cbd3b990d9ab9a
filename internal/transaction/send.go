package transaction

import (
	"context"
	"database/sql/driver"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

// Send runs fn, which sends what is a transaction by itself: one statement, or one message with
// BEGIN and COMMIT in it. Like [Begin] it passes over connections that turn out to be broken, and
// over those that are still inside another transaction. If fn fails, its transaction is
// not left open: it is rolled back, or the connection is closed.
func Send(ctx context.Context, db *sqlx.DB, d dialect.Dialect, fn func(*sqlx.Conn) error) error {
	for unusable := db.Stats().OpenConnections; ; unusable-- {
		conn, err := db.Connx(ctx)
		if err != nil {
			return err
		}
		err = fn(conn)
		giveBack(conn, err == nil || d.IsOver(err) || d.Classify(err) == dialect.Blocked && rolledBack(ctx, conn))
		if unusable <= 0 || !errors.Is(err, driver.ErrBadConn) && d.Classify(err) != dialect.Stuck {
			return err
		}
	}
}

// rolledBack ends the transaction of a message whose statement has waited for a row in vain, and
// reports whether it is over. Other refusals end the transaction by themselves.
func rolledBack(ctx context.Context, conn *sqlx.Conn) bool {
	_, err := conn.ExecContext(ctx, "ROLLBACK")
	return err == nil
}
