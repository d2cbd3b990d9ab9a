package sqllock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
)

// grace is how long a call to the database may take to notice that its context
// has ended. What comes later is not waited for.
const grace = 100 * time.Millisecond

// answered returns what fn, a call to the repository under ctx, returns, or an
// ErrDatabase if there is no answer soon after ctx has ended.
func answered[T any](ctx context.Context, op, key string, fn func() (T, error)) (T, error) {
	value, err := bounded.Do(ctx, grace, fn, nil)
	if errors.Is(err, bounded.ErrNoAnswer) {
		if key != "" {
			op = fmt.Sprintf("%s %q", op, key)
		}
		err = fmt.Errorf("%w: %s: %w", ErrDatabase, op, err)
	}
	return value, err
}

// call returns what fn, which talks to the database, returns. It sends fn again after lost
// races and while a row is pinned, as retry does, and returns grace after ctx has ended at the
// latest, also if the driver does not look at its context. So fn must not write to variables
// of its caller. Every call that is not about a single row goes through here; those that are
// have a limit of their own: see within.
func call[T any](ctx context.Context, r *Repository, op, key string, fn func() (T, error)) (value T, err error) {
	var last error
	err = r.retry(ctx, op, key, func() error {
		value, last = bounded.Do(ctx, grace, fn, nil)
		return last
	})
	if r.isRefusal(last) && !errors.Is(err, last) {
		err = fmt.Errorf("%w: %w", err, last) // it is why ctx ended before an answer
	}
	return value, err
}

// errTooLate is why a row that was acquired gives no lease.
var errTooLate = errors.New("the database took longer to answer than a lease would last")

// errTimedOut is why a call is given up although its context lasts.
var errTimedOut = errors.New("the database does not answer")

func tooLate(key string) error { return fmt.Errorf("%w: %q: %w", ErrDatabase, key, errTooLate) }

// longestAnswer is how long an answer is waited for at least. A lease that is
// shorter would be over by then, but what holds the database up may pass.
const longestAnswer = 10 * time.Second

// within returns what call returns, which talks to the database about one row, or
// errTimedOut if a lease that was asked for now would be long over by then. The error is
// bounded.ErrNoAnswer as well if the call was left behind: late, if there is one, is told
// what comes of it.
func within[T any](ctx context.Context, ttl time.Duration, call func(context.Context) (T, error), late func(T, error)) (T, error) {
	limited, cancel := limit(ctx, max(ttl, longestAnswer))
	defer cancel()
	value, err := bounded.Do(limited, grace, func() (T, error) { return call(limited) }, late)
	if err == nil || ended(limited) == nil || ended(ctx) != nil {
		return value, err
	}
	if errors.Is(err, bounded.ErrNoAnswer) {
		return value, fmt.Errorf("%w: %w", errTimedOut, bounded.ErrNoAnswer)
	}
	return value, errTimedOut // what the driver says would read like the end of ctx
}

// limit is context.WithTimeout, also for a context that does not end at its own deadline.
func limit(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	return context.WithTimeout(undated{ctx}, d)
}

// An undated context does not tell its deadline. A context that is made from one with an earlier
// deadline gets no timer of its own, and there are contexts that do not end at theirs.
type undated struct{ context.Context }

// Deadline implements context.Context.
func (undated) Deadline() (deadline time.Time, ok bool) { return time.Time{}, false }
