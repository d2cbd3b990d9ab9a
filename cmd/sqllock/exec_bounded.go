package main

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
)

// patience is how long a call to the database may take to notice that its
// context has ended, and to clean up.
const patience = 2 * time.Second

// bounded returns what fn returns, or an ErrDatabase if fn goes on for longer
// than the given time after ctx has ended. Not every driver looks at its context
// while it waits for the network: lib/pq waits for a server that has vanished
// until TCP gives up, which is minutes.
func bounded[T any](ctx context.Context, afterwards time.Duration, fn func() (T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done := make(chan outcome, 1)
	go func() {
		value, err := fn()
		done <- outcome{value, err}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(afterwards)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.value, o.err
	case <-timer.C:
		var none T
		return none, fmt.Errorf("%w: no answer: %w", sqllock.ErrDatabase, context.Cause(ctx))
	}
}
