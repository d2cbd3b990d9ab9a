package sqllock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// A row that ends centuries ahead, such as one written by hand for maintenance, is
// polled at the same pace as any other.
func TestARowWithoutEndIsPolledAtTheUsualPace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		_, err := s.repository.Acquire(t.Context(), "k", "maintenance", ttl)
		must(t, err)
		s.db.DB.MustExec("UPDATE INT_LOCK SET EXPIRED_AFTER = '9999-12-31 00:00:00.000'")
		lock := obtain(t, newRegistry(t, s.repository, &sqllock.RegistryOptions{IdleBetweenTries: 100 * time.Millisecond}), "k")
		const wait, most = 2 * time.Second, 110 // a poll takes no time here, so there is one each 20 to 25 ms
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N > most {
				cancel()
			}
			return nil
		})
		if _, err := lock.TryLockFor(ctx, wait); !errors.Is(err, sqllock.ErrNotAcquired) {
			t.Error(err)
		}
		if n := s.connector.Count(); n > most {
			t.Errorf("more than %d statements in %v", most, wait)
		}
	})
}

// Waiters try within a few milliseconds after the row has expired, however long they
// would pause otherwise.
func TestAnExpiryIsNoticedWithinMilliseconds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		const waiters, left = 20, time.Hour
		_, err := s.repository.Acquire(t.Context(), "k", "rival", left)
		must(t, err)
		var polls atomic.Int64
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && m.Done {
				polls.Add(1)
			}
			return nil
		})
		var waiting sync.WaitGroup
		var acquired atomic.Int64
		for range waiters { // each in a process of its own
			registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{IdleBetweenTries: 24 * time.Hour})
			lock := obtain(t, registry, "k")
			waiting.Go(func() {
				_, err := lock.TryLockFor(t.Context(), left+10*time.Millisecond)
				if err == nil {
					acquired.Add(1)
				} else if !errors.Is(err, sqllock.ErrNotAcquired) {
					t.Error(err)
				}
			})
		}
		time.Sleep(left / 2)
		before := polls.Load()
		waiting.Wait()
		if n := polls.Load() - before; n < waiters || acquired.Load() != 1 {
			t.Errorf("%d of %d waiters polled within 10ms of the end of the lease, %d acquired", n, waiters, acquired.Load())
		}
	})
}
