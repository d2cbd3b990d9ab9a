package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// small returns a registry that caches capacity locks.
func small(t *testing.T, capacity int) *sqllock.Registry {
	t.Helper()
	return newRegistry(t, newRepository(t, migrated(t).DB, nil), &sqllock.RegistryOptions{TTL: ttl, CacheCapacity: capacity, NoRenew: true})
}

func TestCache_SetCapacity(t *testing.T) {
	t.Parallel()
	r := small(t, 4)
	lease := locked(t, obtain(t, r, "held"))
	a := obtain(t, r, "a")
	obtain(t, r, "b")
	must(t, r.SetCacheCapacity(1))
	expired(t, r, 0, 0) // the unused ones have gone
	is(t, check.ErrorOf(r.Obtain("c")), sqllock.ErrCapacity)
	must(t, r.SetCacheCapacity(2))
	if obtain(t, r, "a") == a {
		t.Fatal("shrinking must evict the unused")
	}
	must(t, lease.Unlock(t.Context()))
	for _, capacity := range []int{0, -1} {
		is(t, r.SetCacheCapacity(capacity), sqllock.ErrInvalid)
	}
}

func TestCache_ExpireUnused(t *testing.T) {
	t.Parallel()
	r := small(t, 0)
	lease := locked(t, obtain(t, r, "held"))
	obtain(t, r, "a")
	obtain(t, r, "b")
	expired(t, r, time.Hour, 0)
	expired(t, r, 0, 2)
	expired(t, r, 0, 0)
	must(t, lease.Unlock(t.Context()))
	expired(t, r, 0, 1)
	is(t, check.ErrorOf(r.ExpireUnusedOlderThan(-1)), sqllock.ErrInvalid)
}

func expired(t *testing.T, r *sqllock.Registry, age time.Duration, want int) {
	t.Helper()
	check.Equal(t, "forgotten", check.Value(r.ExpireUnusedOlderThan(age))(t), want)
}

// TestCache_FailedLockUsesNoRoom: a caller that has returned does not use the lock any more.
func TestCache_FailedLockUsesNoRoom(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r := small(t, 0)
		l := obtain(t, r, "k")
		lease := locked(t, l)
		is(t, check.ErrorOf(l.TryLock(t.Context())), sqllock.ErrNotAcquired)
		is(t, check.ErrorOf(l.TryLockFor(t.Context(), time.Millisecond)), sqllock.ErrNotAcquired)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		is(t, check.ErrorOf(l.Lock(ctx)), context.Canceled)
		expired(t, r, 0, 0)
		must(t, lease.Unlock(t.Context()))
		expired(t, r, 0, 1)
	})
}

func TestCache_ConcurrentObtain(t *testing.T) {
	t.Parallel()
	r := small(t, 179)
	var group sync.WaitGroup
	for worker := range 4 {
		group.Go(func() {
			for i := range 500 {
				check.Is(t, check.ErrorOf(r.Obtain(fmt.Sprint(i*(worker+1)))), nil)
			}
		})
	}
	group.Wait()
	expired(t, r, 0, 179)
}

// TestCache_ExpiringWhileObtaining: two who obtain while a third expires
// exclude each other, whichever lock objects they were given.
// The two hundred rounds take a second of processor time.
func TestCache_ExpiringWhileObtaining(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		// Autocommit without tokens, because the subject is the objects of the process.
		r := newRegistry(t, newRepository(t, migrated(t).DB, &sqllock.RepositoryOptions{
			Isolation: sqllock.Autocommit, DisableFencing: true,
		}), nil)
		for range 200 {
			var group sync.WaitGroup
			var inside atomic.Int64
			group.Go(func() { _, _ = r.ExpireUnusedOlderThan(0) })
			for range 2 {
				group.Go(func() {
					err := r.ExecuteLocked(t.Context(), "k", func(context.Context) error {
						if inside.Add(1) != 1 {
							t.Error("two holders")
						}
						inside.Add(-1)
						return nil
					})
					is(t, err, nil)
				})
			}
			group.Wait()
		}
	})
}

func TestCache_Held(t *testing.T) {
	t.Parallel()
	r := small(t, 0)
	check.Same(t, "held", r.Held(), nil)
	lease := locked(t, obtain(t, r, "k"))
	held := r.Held()
	if len(held) != 1 || held[0].Key != "k" || held[0].Holder != lease.Holder() || !held[0].Deadline.Equal(lease.Deadline()) {
		t.Fatal(held)
	}
	must(t, lease.Unlock(t.Context()))
	check.Same(t, "held", r.Held(), nil)
}

// While a lock is cached it is the same object. The longest unused one is evicted first.
func TestCache_SameLock(t *testing.T) {
	t.Parallel()
	r := small(t, 2)
	a, b := obtain(t, r, "a"), obtain(t, r, "b")
	if a == b || a.Key() != "a" || obtain(t, r, "a") != a {
		t.Error("a is not the same lock")
	}
	obtain(t, r, "c")
	if obtain(t, r, "a") != a {
		t.Error("a was used after b and evicted before")
	}
	if obtain(t, r, "b") == b {
		t.Error("b was not evicted")
	}
}

// A lock in use stays, so that a full cache has no room for another one, and an evicted handle has none
// either. A smaller capacity changes nothing for those in use.
func TestCache_HeldIsNeverEvicted(t *testing.T) {
	t.Parallel()
	r := small(t, 2)
	a := obtain(t, r, "a")
	lease := locked(t, a)
	evicted := obtain(t, r, "evicted")
	for i := range 10 {
		obtain(t, r, fmt.Sprint(i))
	}
	if obtain(t, r, "a") != a {
		t.Fatal("evicted")
	}
	is(t, check.ErrorOf(obtain(t, r, "a").TryLock(t.Context())), sqllock.ErrNotAcquired)
	b := locked(t, obtain(t, r, "b"))
	is(t, check.ErrorOf(r.Obtain("c")), sqllock.ErrCapacity)
	if _, err := evicted.TryLock(t.Context()); !errors.Is(err, sqllock.ErrCapacity) || !strings.Contains(err.Error(), `"evicted"`) {
		t.Error(err)
	}
	must(t, r.SetCacheCapacity(1))
	if obtain(t, r, "a") != a || len(r.Held()) != 2 {
		t.Error("a held lock was evicted")
	}
	must(t, b.Unlock(t.Context()))
	expired(t, r, 0, 0) // it has gone, because there were too many
	must(t, r.SetCacheCapacity(2))
	again := try(t, evicted)
	if _, err := r.TryLock(t.Context(), "evicted"); !errors.Is(err, sqllock.ErrNotAcquired) { // whatever handle it is
		t.Error(err)
	}
	must(t, again.Unlock(t.Context()))
	must(t, lease.Unlock(t.Context()))
}
