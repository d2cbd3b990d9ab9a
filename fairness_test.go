package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// Two crowds that both hand the row on among themselves compete for one key, as two processes would.
// Neither may starve the other.
func TestProcessesWithManyCallersShareALock(t *testing.T) {
	t.Parallel()
	for _, latency := range []time.Duration{time.Millisecond, 50 * time.Millisecond} {
		t.Run(fmt.Sprint(latency), func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				const fair = 0.35 // the smaller share of two, at least
				shares := compete(t, latency, 15*time.Second)
				first, second := float64(shares[0]), float64(shares[1])
				t.Logf("%.0f and %.0f", first, second)
				if min(first, second) < fair*(first+second) {
					t.Errorf("%.0f and %.0f: the smaller share is less than %v", first, second, fair)
				}
			})
		})
	}
}

// compete has two crowds lock one key for a while. It returns how often each had the lock.
func compete(t *testing.T, latency, each time.Duration) (shares [2]int) {
	t.Helper()
	const callers = 5
	s := newFixture(t, sqllock.Serializable)
	s.delay(latency)
	defer s.connector.Follow(nil)
	ctx, cancel := context.WithTimeout(t.Context(), each)
	defer cancel()
	var working sync.WaitGroup
	var inside sync.Mutex
	for i := range shares {
		registry := newRegistry(t, newRepository(t, s.pool, nil), &sqllock.RegistryOptions{HandOff: true})
		for range callers {
			working.Go(func() {
				for ctx.Err() == nil {
					err := registry.ExecuteLocked(ctx, "k", func(context.Context) error {
						if !inside.TryLock() {
							t.Error("two holders")
							return nil
						}
						defer inside.Unlock()
						time.Sleep(20 * time.Millisecond)
						shares[i]++
						return nil
					})
					if err != nil && !errors.Is(err, context.DeadlineExceeded) {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	working.Wait()
	return shares
}

// delay has each operation on the database take as long as latency.
func (s *fixture) delay(latency time.Duration) {
	s.connector.Follow(func(ctx context.Context, moment flaky.Moment) error {
		if !moment.Done {
			bounded.Sleep(ctx, latency)
		}
		return ctx.Err()
	})
}
