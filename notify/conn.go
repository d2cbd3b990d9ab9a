package notify

import (
	"context"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgproto3"
)

// query sends statements and returns the last value that they answer, with what is
// notified meanwhile told. It is used instead of PgConn.Exec, which leaves a goroutine
// behind for up to 15 s when ctx ends while the server is silent.
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

// hangUp closes a connection, whatever has become of ctx.
func hangUp(ctx context.Context, conn *pgconn.PgConn) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	_ = conn.Close(ctx) // it may be broken
	// A broken one is being closed already, politely, which can take 15 s.
	_ = conn.Conn().Close()
}
