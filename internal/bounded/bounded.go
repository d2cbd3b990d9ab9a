// Package bounded makes calls to a database return soon after their context has ended. Not every driver checks its
// context while it waits for the network: if a server has vanished, lib/pq waits for minutes, until TCP times out.
package bounded

import (
	"context"
	"errors"
	"time"
)

// ErrNoAnswer is returned for a call that did not return in time.
var ErrNoAnswer = errors.New("no answer")

// Do calls fn and returns its results. If fn has not returned within grace after the end of ctx, Do returns
// ErrNoAnswer with the cause of ctx. fn then goes on in a goroutine of its own, which calls late, if not nil, with
// the results of fn. grace gives a driver that does check its context the time to return.
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
		return none, &causedError{ErrNoAnswer, context.Cause(ctx)}
	}
}
