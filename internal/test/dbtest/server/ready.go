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
func (s *Server) awaitReady(ctx context.Context, p *process) error {
	ping, end, err := s.pinger()
	if err != nil {
		return err
	}
	defer end() //nolint:errcheck // it was used for pings only
	retry := time.NewTicker(20 * time.Millisecond)
	defer retry.Stop()
	for {
		// A server that is starting may accept a connection and not respond.
		limited, cancel := context.WithTimeout(ctx, time.Second)
		refused := ping(limited)
		cancel()
		// Checked after the ping: otherwise another server on the same port could
		// have answered.
		if p.HasEnded() {
			return fmt.Errorf("%w, with %s", errNotReady, p.exit())
		}
		if refused == nil {
			return nil
		}
		select {
		case <-retry.C:
		case <-p.Ended:
		case <-ctx.Done():
			return fmt.Errorf("%w; the last try: %w", context.Cause(ctx), refused)
		}
	}
}

// pinger returns a function that asks the server for a sign of life, and one that ends its connections.
func (s *Server) pinger() (ping func(context.Context) error, end func() error, err error) {
	if s.recipe.Driver == "" {
		return func(ctx context.Context) error {
			conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address())
			if err != nil {
				return err
			}
			return conn.Close()
		}, func() error { return nil }, nil
	}
	db, err := sql.Open(s.recipe.Driver, s.DSN())
	if err != nil {
		return nil, nil, err
	}
	return db.PingContext, db.Close, nil
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
