package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// errNotReady means that the server ended before it answered.
var errNotReady = errors.New("ended before it was ready")

// awaitReady returns nil when the server answers a ping, an error as soon as
// its process ends or ctx does.
func awaitReady(ctx context.Context, p *process, driver, dsn string) error {
	db, err := sql.Open(driver, dsn)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // it has been used for pings only
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		refused := ping(ctx, db)
		// Asked after the ping, so that it cannot be another server on the
		// same port that has answered.
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

// ping gives each try a second, since a server that is starting may accept a
// connection and leave it unanswered.
func ping(ctx context.Context, db *sql.DB) error {
	ctx, cancel := context.WithTimeout(ctx, time.Second)
	defer cancel()
	return db.PingContext(ctx)
}
