package main

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
)

// A lease is renewed when a third of its time-to-live has passed. A try may take
// a quarter of it, which leaves time for a second one over another connection.
const (
	renewEvery   = 3
	renewTimeout = 4
	renewRetry   = 15
)

// keepRenewed renews the lease until it is lost or the returned function is
// called, which waits for a renewal on its way: it must not come after the
// release and keep the row alive.
func (x *execution) keepRenewed(lease *sqllock.Lease) (stop func()) {
	if x.noRenew {
		return func() {}
	}
	ending, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		x.renewUntil(ending, lease)
	}()
	return func() {
		close(ending)
		<-ended
	}
}

// renewUntil tells of trouble once when it begins and once when it is over.
func (x *execution) renewUntil(ending <-chan struct{}, lease *sqllock.Lease) {
	trouble := false
	for pause := x.ttl / renewEvery; ; {
		timer := time.NewTimer(pause)
		select {
		case <-ending:
			timer.Stop()
			return
		case <-lease.Context().Done():
			timer.Stop()
			return
		case <-timer.C:
		}
		switch err := x.renewOnce(lease); {
		case err == nil:
			if trouble {
				x.say("renewed %q again", x.key)
			}
			trouble, pause = false, x.ttl/renewEvery
		case errors.Is(err, sqllock.ErrLockLost):
			return // whoever watches the lease's context tells
		default:
			if !trouble {
				x.say("renew %q: %s; trying again while the lease lasts, for %s", x.key, textOf(err), short(time.Until(lease.Deadline())))
			}
			trouble, pause = true, x.ttl/renewRetry
		}
	}
}

// renewOnce does not wait for a connection that has gone dead: the next try gets
// another one.
func (x *execution) renewOnce(lease *sqllock.Lease) error {
	ctx, cancel := context.WithTimeout(lease.Context(), x.ttl/renewTimeout)
	defer cancel()
	_, err := bounded(ctx, 0, func() (struct{}, error) { return struct{}{}, lease.Renew(ctx) })
	return err
}
