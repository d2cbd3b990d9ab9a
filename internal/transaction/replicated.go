package transaction

import (
	"context"
	"database/sql"
	"errors"

	"github.com/sqllock/sqllock/dialect"
)

// ErrUnreplicated is why it is not known whether what was committed outlasts a failover. PostgreSQL answers a COMMIT
// whose wait for the synchronous standby was cancelled with success, and a warning.
var ErrUnreplicated = errors.New("the server has stopped waiting for its synchronous standby: a failover may undo what was committed")

// replicated returns err, of what has just committed on conn, or ErrUnreplicated. Only the pools of Open see the
// warning. But lib/pq has the server cancel its wait when ctx ends, whatever the pool: then no success counts.
func replicated(ctx context.Context, conn *sql.Conn, d *dialect.Dialect, err error) error {
	if err != nil || !d.WarnsUnreplicated {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err := conn.Raw(askReplicated); errors.Is(err, ErrUnreplicated) {
		return err
	}
	return nil
}

// askReplicated returns ErrUnreplicated if c, a connection of a driver, has seen the warning.
func askReplicated(c any) error {
	if asked, ok := c.(interface{ Unreplicated() bool }); ok && asked.Unreplicated() {
		return ErrUnreplicated
	}
	return nil
}
