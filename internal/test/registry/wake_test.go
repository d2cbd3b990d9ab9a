package registry_test

import (
	"context"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	shared "github.com/sqllock/sqllock/internal/test/fixture"
)

// TestWake_ReleaseBeforeTheSubscription releases after the waiter's try, and before it
// has subscribed: no wake-up will come.
func TestWake_ReleaseBeforeTheSubscription(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, waker := migrated(t), &shared.Waker{}
		lease := locked(t, obtain(t, newRegistry(t, newRepository(t, db.DB, nil), nil), "k"))
		waker.OnWatch = func() { must(t, lease.Unlock(t.Context())) }
		waiting := newRegistry(t, newRepository(t, db.DB, nil), &sqllock.RegistryOptions{IdleBetweenTries: never, TTL: never, Waker: waker})
		must(t, check.Value(obtain(t, waiting, "k").TryLockFor(t.Context(), 30*time.Second))(t).Unlock(t.Context()))
		if _, subscriptions := waker.Seen(); subscriptions != 0 {
			t.Errorf("%d subscriptions that stay", subscriptions)
		}
	})
}

// TestWake_WaiterSubscribesOnce wakes the waiter a few times without a release: it tries, and waits on.
func TestWake_WaiterSubscribesOnce(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, waker := migrated(t), &shared.Waker{}
		repository := newRepository(t, db.DB, &sqllock.RepositoryOptions{Region: "r", Prefix: "int_"})
		lease := locked(t, obtain(t, newRegistry(t, repository, &sqllock.RegistryOptions{TTL: never}), "k"))
		waiting := newRegistry(t, repository, &sqllock.RegistryOptions{IdleBetweenTries: never, TTL: never, Waker: waker})
		ctx, cancel := context.WithCancel(t.Context())
		waker.OnWatch = func() {
			go func() {
				for range 5 {
					waker.WakeAll()
				}
				cancel()
			}()
		}
		is(t, check.ErrorOf(obtain(t, waiting, "k").Lock(ctx)), sqllock.ErrNotAcquired)
		names := check.Value(dialect.NamesFor("INT_"))(t)
		key := check.Value(repository.LockKey("k"))(t)
		topics, subscriptions := waker.Seen()
		if len(topics) != 1 || topics[0] != names.Topic("r", key) {
			t.Errorf("watched %q", topics)
		}
		check.Equal(t, "subscriptions that stay", subscriptions, 0)
		must(t, lease.Unlock(t.Context()))
	})
}

// TestWake_CallerThatNeedNotWait spares a lock that is free the subscription.
func TestWake_CallerThatNeedNotWait(t *testing.T) {
	t.Parallel()
	waker := &shared.Waker{}
	registry := newRegistry(t, newRepository(t, migrated(t).DB, nil), &sqllock.RegistryOptions{Waker: waker})
	lease := locked(t, obtain(t, registry, "k"))
	is(t, check.ErrorOf(obtain(t, registry, "k").TryLock(t.Context())), sqllock.ErrNotAcquired)
	must(t, lease.Unlock(t.Context()))
	if topics, _ := waker.Seen(); len(topics) != 0 {
		t.Errorf("watched %q", topics)
	}
}
