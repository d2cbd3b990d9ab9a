// Package bounded makes calls to a database return soon after their context has ended. Not every driver checks its
// context while it waits for the network: if a server has vanished, lib/pq waits for minutes, until TCP times out.
package bounded

import (
	"context"
	"errors"
	"strings"
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

// Grace is how long a driver may take to notice that its context has ended. What comes later is not waited for.
const Grace = 100 * time.Millisecond

// timerDelay limits how long awaitEnd waits for a context that is past its deadline.
const timerDelay = time.Second

// Ended returns an error that wraps both ctx.Err() and the cause, or nil if ctx has not ended. A context whose
// deadline has passed counts as ended even if its timer has not run yet: a driver that passes the deadline to the
// network may notice the deadline first.
func Ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		awaitEnd(ctx) // not every context ends at its deadline
	}
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if cause == nil { // of a context that is not of package context
		return err
	}
	if errors.Is(cause, err) {
		return cause
	}
	return &causedError{err, cause}
}

// A causedError is an error with the cause of the context that has ended. Both may be errors of sqllock: the text names that
// once, at its beginning.
type causedError struct{ err, cause error }

func (e *causedError) Error() string {
	return e.err.Error() + ": " + strings.TrimPrefix(e.cause.Error(), "sqllock: ")
}

func (e *causedError) Unwrap() []error { return []error{e.err, e.cause} }

// awaitEnd waits until a context whose deadline has passed ends.
func awaitEnd(ctx context.Context) {
	done := ctx.Done()
	if done == nil { // it never ends
		return
	}
	timer := time.NewTimer(timerDelay)
	defer timer.Stop()
	select {
	case <-done:
	case <-timer.C:
	}
}

// WithTimeout is context.WithTimeout, also for a parent that does not end at its own deadline.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(undated{ctx}, d)
}

// An undated context hides its deadline. If the parent has an earlier deadline, context.WithTimeout sets no timer of
// its own, and some parents do not end at their deadline.
type undated struct{ context.Context }

// Deadline implements context.Context.
func (undated) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Sleep waits for d. It returns false if ctx ends first.
func Sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
