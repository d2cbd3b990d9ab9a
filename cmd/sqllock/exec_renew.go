package main

import (
	"context"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
)

// keepRenewed renews the lease every third of its time-to-live until it is lost or
// stop is called, which waits. A renewal that fails is tried again soon, for as
// long as the lease lasts; the first failure in a row is told.
func keepRenewed(ctx context.Context, lease *sqllock.Lease, ttl time.Duration, tell func(error)) (stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	var running sync.WaitGroup
	running.Go(func() {
		pause, failing := ttl/3, false
		for rest(ctx, lease, pause) {
			err := renewOnce(ctx, lease, ttl/3)
			if err != nil && !failing && ctx.Err() == nil && lease.Context().Err() == nil {
				tell(err)
			}
			failing = err != nil
			pause = ttl / 3
			if failing {
				pause = ttl / 15
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// renewOnce bounds one renewal, so that a connection that is dead does not take all
// the time that the lease has left.
func renewOnce(ctx context.Context, lease *sqllock.Lease, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return lease.Renew(ctx)
}

// rest waits and returns false if there is nothing to renew any more.
func rest(ctx context.Context, lease *sqllock.Lease, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-lease.Context().Done():
	}
	return false
}
