package server

import (
	"context"
	"sync"
	"time"
)

// Supervise starts the server again when it ends by itself, as an init does, and tells of that, until
// ctx ends or stop is called. PgBouncer 1.18 ends when clients cancel many statements (pgbouncer#801).
func (s *Server) Supervise(ctx context.Context, tell func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var supervising sync.WaitGroup
	supervising.Go(func() {
		for ctx.Err() == nil {
			if !s.awaitEnd(ctx) {
				continue
			}
			why, err := s.restartEnded(ctx)
			if why != nil {
				tell(why)
			}
			for err != nil && ctx.Err() == nil {
				err = s.Restart(ctx)
			}
		}
	})
	return func() {
		cancel()
		supervising.Wait()
	}
}

// awaitEnd waits until the server has ended, by itself or not. It is false if nothing has ended.
func (s *Server) awaitEnd(ctx context.Context) bool {
	s.mu.Lock()
	p := s.process
	s.mu.Unlock()
	if p == nil {
		wait := time.NewTimer(100 * time.Millisecond) // until somebody starts it
		defer wait.Stop()
		select {
		case <-wait.C:
		case <-ctx.Done():
		}
		return false
	}
	select {
	case <-p.ended:
		return true
	case <-ctx.Done():
		return false
	}
}

// restartEnded starts a server that has ended by itself. It returns why it ended, or nil if it was
// stopped, and an error if it does not start.
func (s *Server) restartEnded(ctx context.Context) (why, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.process == nil || !s.process.hasEnded() {
		return nil, nil
	}
	return s.stop(), s.restart(ctx)
}
