// Package bounded keeps calls to a database from outlasting their context. Not
// every driver looks at its context while it waits for the network: lib/pq waits
// for a server that has vanished until TCP gives up, which is minutes.
package bounded

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrNoAnswer says that a call was given up.
var ErrNoAnswer = errors.New("no answer")

// Do returns what fn returns, or ErrNoAnswer with the cause of ctx if fn goes on
// for longer than grace after ctx has ended: long enough for a driver that does
// look at its context. Then fn is left behind in a goroutine of its own, and late,
// unless it is nil, is called there with what fn returns at last.
func Do[T any](ctx context.Context, grace time.Duration, fn func() (T, error), late func(T, error)) (T, error) {
	type outcome struct {
		value T
		err   error
	}
	done, left := make(chan outcome), make(chan struct{})
	go func() {
		value, err := fn()
		select {
		case done <- outcome{value, err}:
		case <-left:
			if late != nil {
				late(value, err)
			}
		}
	}()
	select {
	case o := <-done:
		return o.value, o.err
	case <-ctx.Done():
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case o := <-done:
		return o.value, o.err
	case <-timer.C:
		close(left)
		var none T
		return none, fmt.Errorf("%w: %w", ErrNoAnswer, context.Cause(ctx))
	}
}
