package exec

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bounded"
)

// answerTimeout is how long a call to the database may take after its context has ended,
// to notice that and to clean up.
const answerTimeout = 2 * time.Second

// answered returns the results of fn. If fn runs for longer than the given time after
// ctx has ended, it returns an ErrDatabase, and fn goes on in the background.
func answered[T any](ctx context.Context, afterwards time.Duration, fn func() (T, error)) (T, error) {
	value, err := bounded.Do(ctx, afterwards, fn, nil)
	if errors.Is(err, bounded.ErrNoAnswer) {
		err = fmt.Errorf("%w: %w", sqllock.ErrDatabase, err)
	}
	return value, err
}
