package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bounded"
)

// patience is how long a call to the database may take to notice that its
// context has ended, and to clean up.
const patience = 2 * time.Second

// answered returns what fn returns, or an ErrDatabase if fn goes on for longer
// than the given time after ctx has ended.
func answered[T any](ctx context.Context, afterwards time.Duration, fn func() (T, error)) (T, error) {
	value, err := bounded.Do(ctx, afterwards, fn, nil)
	if errors.Is(err, bounded.ErrNoAnswer) {
		err = fmt.Errorf("%w: %w", sqllock.ErrDatabase, err)
	}
	return value, err
}
