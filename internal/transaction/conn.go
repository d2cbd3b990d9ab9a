package transaction

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
)

// maxClosed limits how many closed connections one call passes over. It does not depend on what the
// pool says, because there may be another pool behind it, as pgxpool is: see stdlib.OpenDBFromPool.
const maxClosed = 100

// OnConn runs fn, which sends one statement or message, on a connection of the pool. It passes over
// connections that turn out to be closed by the server, or to be still inside another transaction, and
// runs fn on the next one. So fn must be safe to repeat: resent reports whether a statement may have been
// applied before. An error of a new connection is returned as it is.
//
// database/sql does the same for a connection that its driver calls bad. lib/pq does that for any
// connection that breaks, pgx for none that has broken within the last second.
func OnConn(ctx context.Context, db *sqlx.DB, d dialect.Dialect, fn func(*sqlx.Conn) error) (resent bool, err error) {
	return onConn(ctx, db, d, fn, isUsable)
}

// onConn is OnConn with a rule for whether the connection can be used again. Without one, fn gives it back
// itself.
func onConn(
	ctx context.Context, db *sqlx.DB, d dialect.Dialect, fn func(*sqlx.Conn) error,
	usable func(context.Context, *sqlx.Conn, dialect.Dialect, error) bool,
) (resent bool, err error) {
	stuck := db.Stats().OpenConnections
	for n := 0; ; n++ {
		conn, err := db.Connx(ctx)
		if err != nil {
			return resent, err
		}
		err = fn(conn)
		if usable != nil {
			err = replicated(ctx, conn, d, err)
			giveBack(conn, usable(ctx, conn, d, err))
		}
		if err == nil {
			return resent, nil
		}
		class := d.Classify(err)
		again := class == dialect.Stuck && n < stuck || class == dialect.Closed && n < max(stuck, maxClosed)
		if !again || ctx.Err() != nil {
			return resent, err
		}
		resent = resent || class == dialect.Closed
	}
}

// isUsable is the rule for a connection on which one statement has ended with err.
func isUsable(_ context.Context, _ *sqlx.Conn, d dialect.Dialect, err error) bool {
	if err == nil {
		return true
	}
	class := d.Classify(err)
	return class != dialect.Stuck && class != dialect.Closed
}
