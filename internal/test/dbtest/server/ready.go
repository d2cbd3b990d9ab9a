package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// errNotReady means that the server has ended before it responded.
var errNotReady = errors.New("ended before it was ready")

// awaitReady waits until the server answers a ping. It returns an error if its process or ctx
// ends before.
func awaitReady(ctx context.Context, p *process, driver, dsn string) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // it was used for pings only
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		refused := ping(ctx, db)
		// Checked after the ping: otherwise another server on the same port could
		// have answered.
		if p.hasEnded() {
			return fmt.Errorf("%w, with %s", errNotReady, p.exit())
		}
		if refused == nil {
			return nil
		}
		select {
		case <-retry.C:
		case <-p.ended:
		case <-ctx.Done():
			return fmt.Errorf("%w; the last try: %w", context.Cause(ctx), refused)
		}
	}
}

// ping limits each attempt to a second, since a server that is starting may accept a connection
// and not respond.
func ping(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return db.PingContext(ctx)
}
