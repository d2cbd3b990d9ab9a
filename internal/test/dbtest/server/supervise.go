package server

import (
	"context"
	"sync"
	"time"
)

// Supervise starts the server again when it ends by itself, as an init does, and calls tell with the
// reason, until stop is called or ctx ends. The caller stops and restarts the server only after stop.
// PgBouncer 1.18 ends when clients cancel many statements (pgbouncer#801).
func (s *Server) Supervise(ctx context.Context, tell func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var supervising sync.WaitGroup
	supervising.Go(func() {
		for s.awaitEnd(ctx) {
			tell(s.Stop())
			for s.Restart(ctx) != nil && ctx.Err() == nil {
				time.Sleep(20 * time.Millisecond)
			}
		}
	})
	return func() {
		cancel()
		supervising.Wait()
	}
}

// awaitEnd waits until the server has ended by itself. It is false if ctx ends before.
func (s *Server) awaitEnd(ctx context.Context) bool {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil {
		return false
	}
	select {
	case <-p.Ended:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
