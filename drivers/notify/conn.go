package notify

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// query runs statements and returns the last value of their results. Notifications that arrive meanwhile are
// delivered. PgConn.Exec is not used, because it can leave a goroutine behind for up to 15 s if ctx ends while the
// server does not respond.
func query(ctx context.Context, conn *pgconn.PgConn, sql string) (last string, err error) {
	conn.Frontend().SendQuery(&pgproto3.Query{String: sql})
	if err := conn.Frontend().Flush(); err != nil {
		return "", err
	}
	for {
		message, received := conn.ReceiveMessage(ctx)
		if received != nil {
			return "", received
		}
		switch m := message.(type) {
		case *pgproto3.DataRow:
			last = string(m.Values[0])
		case *pgproto3.ErrorResponse:
			err = pgconn.ErrorResponseToPgError(m)
		case *pgproto3.ReadyForQuery:
			return last, err
		}
	}
}

// disconnect closes a connection, even if ctx has ended.
func disconnect(ctx context.Context, conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // the connection may be broken
	// pgconn may still be closing a broken connection gracefully, for up to 15 s.
	_ = conn.Conn().Close()
}
