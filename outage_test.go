package sqllock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// blackHole has every operation hang until its context ends.
func blackHole(s *fixture) {
	s.connector.Follow(func(ctx context.Context, m flaky.Moment) error {
		if !m.Done {
			<-ctx.Done()
			return ctx.Err()
		}
		return nil
	})
}

// If the database does not answer, a call ends when its time is over.
func TestATimedTryEndsInTimeWhenTheDatabaseHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		blackHole(s)
		start := time.Now()
		_, err := s.lock.TryLockFor(t.Context(), 200*time.Millisecond)
		if !errors.Is(err, sqllock.ErrNotAcquired) {
			t.Fatal(err)
		}
		// The row that may be left is cleared for a second at most.
		if after := time.Since(start); after < 200*time.Millisecond || after > 1500*time.Millisecond {
			t.Fatalf("after %v", after)
		}
		s.connector.Follow(nil) // Close clears up
	})
}

func TestACancelledWaitEndsWhenTheDatabaseHangs(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		blackHole(s)
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(50*time.Millisecond, cancel)
		if _, err := s.lock.Lock(ctx); !errors.Is(err, context.Canceled) || !errors.Is(err, sqllock.ErrNotAcquired) {
			t.Fatal(err)
		}
		s.connector.Follow(nil) // Close clears up
	})
}

// An outage that is shorter than the lease ends no lease, and every call works again
// afterwards.
func TestALeaseOutlivesAShortOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		lease := held(s)
		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		if err := lease.Renew(t.Context()); !errors.Is(err, sqllock.ErrDatabase) || errors.Is(err, sqllock.ErrLockLost) {
			t.Fatal(err)
		}
		other := obtain(t, s.registry, "other")
		if _, err := other.Lock(t.Context()); !errors.Is(err, sqllock.ErrDatabase) {
			t.Fatal(err)
		}
		must(t, lease.Context().Err())
		s.connector.Follow(nil)
		must(t, lease.Renew(t.Context()))
		again, err := other.Lock(t.Context())
		must(t, err)
		must(t, again.Unlock(t.Context()))
		must(t, lease.Unlock(t.Context()))
	})
}

// Close reports what it could not release, and tries again when it is called again.
func TestCloseDuringAnOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		lease := held(s)
		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		if err := s.registry.Close(t.Context()); !errors.Is(err, sqllock.ErrDatabase) {
			t.Fatal(err)
		}
		if !errors.Is(context.Cause(lease.Context()), sqllock.ErrClosed) {
			t.Fatal(context.Cause(lease.Context()))
		}
		s.connector.Follow(nil)
		must(t, s.registry.Close(t.Context()))
		rows, err := s.repository.List(t.Context())
		must(t, err)
		if len(rows) != 0 {
			t.Fatal(rows)
		}
	})
}

// A row that could not be cleared keeps its own client out only while the outage
// lasts.
func TestAnAbandonedRowIsClearedAfterTheOutage(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.N == 1 && !m.Done {
				return nil // the row is acquired
			}
			return errGone
		})
		for range 3 {
			if _, err := s.lock.TryLock(t.Context()); !errors.Is(err, sqllock.ErrDatabase) {
				t.Fatal(err)
			}
		}
		if _, err := obtain(t, s.registry, "other").TryLock(t.Context()); !errors.Is(err, sqllock.ErrDatabase) {
			t.Fatal(err)
		}
		s.connector.Follow(nil)
		lease, err := s.lock.TryLock(t.Context())
		must(t, err)
		must(t, lease.Unlock(t.Context()))
	})
}

// A server that goes down and comes back has forgotten nothing. (It is not killed:
// the servers of these tests do not wait for the disk, for speed.)
// It takes as long as the server takes to stop and start.
func TestALeaseOutlivesARestartOfTheServer(t *testing.T) {
	t.Parallel()
	for name, w := range watchedServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := w.run(t)
			repository, err := sqllock.NewRepository(t.Context(), db.DB, w.dialect, nil)
			must(t, err)
			registry := newRegistry(t, repository, &sqllock.RegistryOptions{TTL: ttl})
			lease, err := obtain(t, registry, "k").Lock(t.Context())
			must(t, err)
			must(t, s.Stop())
			if err := lease.Renew(t.Context()); !errors.Is(err, sqllock.ErrDatabase) || errors.Is(err, sqllock.ErrLockLost) {
				t.Fatal(err)
			}
			must(t, s.Restart(t.Context()))
			must(t, lease.Renew(t.Context()))
			rival, err := sqllock.NewRepository(t.Context(), db.DB, w.dialect, nil)
			must(t, err)
			if _, err := obtain(t, newRegistry(t, rival, nil), "k").TryLock(t.Context()); !errors.Is(err, sqllock.ErrNotAcquired) {
				t.Fatal(err)
			}
			must(t, lease.Unlock(t.Context()))
			again, err := obtain(t, registry, "other").Lock(t.Context())
			must(t, err)
			must(t, again.Unlock(t.Context()))
		})
	}
}
