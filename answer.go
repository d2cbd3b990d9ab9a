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
		err = fmt.Errorf("%w: %s %q: %w", ErrDatabase, op, key, err)
	}
	return value, err
}

// errTooLate is why a row that was acquired gives no lease, and a call that takes
// very long is given up.
var errTooLate = errors.New("the database took longer to answer than the lease lasts")

func tooLate(key string) error { return fmt.Errorf("%w: %q: %w", ErrDatabase, key, errTooLate) }

// longestAnswer is how long an answer is waited for at least. A lease that is
// shorter would be over by then, but what holds the database up may pass.
const longestAnswer = 10 * time.Second

// within runs a call that is of no use any more when a lease that was asked for now
// would be long over.
func within[T any](ctx context.Context, ttl time.Duration, key string, call func(context.Context) (T, error)) (T, error) {
	limited, cancel := context.WithTimeout(ctx, max(ttl, longestAnswer))
	defer cancel()
	value, err := call(limited)
	if err != nil && limited.Err() != nil && ended(ctx) == nil {
		err = tooLate(key)
	}
	return value, err
}
