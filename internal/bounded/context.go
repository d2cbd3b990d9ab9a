package bounded

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// timerDelay is how long after its deadline a context may take to end.
const timerDelay = time.Second

// Ended returns why ctx is done, so that errors.Is finds both ctx.Err() and the cause, or
// nil. A context whose deadline has passed counts as done although its timer has not run
// yet: a driver that gives the deadline to the network may notice it first.
func Ended(ctx context.Context) error {
	if deadline, ok := ctx.Deadline(); ok && ctx.Err() == nil && !time.Now().Before(deadline) {
		awaitEnd(ctx) // a context of another kind may have a deadline and never end
	}
	err := ctx.Err()
	if err == nil {
		return nil
	}
	cause := context.Cause(ctx)
	if errors.Is(cause, err) {
		return cause
	}
	return fmt.Errorf("%w: %w", err, cause)
}

// awaitEnd waits for the timer of a context whose deadline has passed.
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

// WithTimeout is context.WithTimeout, also for a context that does not end at its own
// deadline.
func WithTimeout(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(undated{ctx}, d)
}

// An undated context hides its deadline. A context that is made from one with an earlier
// deadline gets no timer of its own, and some contexts do not end at theirs.
type undated struct{ context.Context }

// Deadline implements context.Context.
func (undated) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }

// Sleep waits for d. It returns false if ctx ended first.
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
