package server

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
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

// freePort returns an unused TCP port of 127.0.0.1. It lies below the range from which the
// kernel takes the ports of outgoing connections: such a connection could otherwise use the
// port while the server restarts.
func freePort(ctx context.Context) (int, error) {
	const lowest, highest, tries = 15000, 32000, 100
	var refusals []error
	for range tries {
		port := lowest + rand.IntN(highest-lowest) //nolint:gosec // not a secret
		listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp4", fmt.Sprintf("127.0.0.1:%d", port))
		if err != nil {
			refusals = append(refusals, err)
			continue
		}
		return port, listener.Close()
	}
	return 0, fmt.Errorf("find a free port: %w", errors.Join(refusals...))
}
