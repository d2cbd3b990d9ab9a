package registry_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	shared "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// twoRegistries returns two registries, as of two processes, over one database.
func twoRegistries(t *testing.T, opts *sqllock.RegistryOptions) (one, other *sqllock.Registry) {
	t.Helper()
	db := migrated(t)
	return newRegistry(t, newRepository(t, db.DB, nil), opts), newRegistry(t, newRepository(t, db.DB, nil), opts)
}

// The lease of a joint lock is that of each of its keys.
func TestJoint_LeaseFrom(t *testing.T) {
	t.Parallel()
	one, _ := twoRegistries(t, nil)
	outer := locked(t, obtainAll(t, one, "a", "b", "c"))
	check.Equal(t, "lease", check.Value(one.LeaseFrom(outer.Context(), "b"))(t), outer)
	must(t, one.RenewLock(outer.Context(), "c"))
	check.Equal(t, "keys are held", len(one.Held()), 3)
	if leases := one.LeasesFrom(outer.Context()); len(leases) != 1 || leases[0] != outer {
		t.Error(leases)
	}
	must(t, outer.Unlock(t.Context()))
	check.Same(t, "leases", one.LeasesFrom(outer.Context()), nil)
}

// Bad keys are refused. Those that map to one LOCK_KEY count once, also beside the limit.
func TestJoint_Keys(t *testing.T) {
	t.Parallel()
	one, _ := twoRegistries(t, nil)
	many := make([]string, sqllock.MaxKeys+1)
	for i := range many {
		many[i] = fmt.Sprint("k", i)
	}
	for name, keys := range map[string][]string{"None": nil, "Many": many, "Bad": {"a", ""}} {
		if _, err := one.ObtainAll(keys...); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	check.Equal(t, "keys", len(obtainAll(t, one, slices.Concat(many[1:], many[1:])...).Keys()), sqllock.MaxKeys)
	check.Equal(t, "the lock of one key", obtainAll(t, one, "a", "a"), obtain(t, one, "a"))
}

// A caller that holds b and wants a, and one that wants both, do not wait for each other for ever.
func TestJoint_DoesNotDeadlockWithNestedOnes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one, _ := twoRegistries(t, &sqllock.RegistryOptions{})
		for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
			first := tryKey(t, one, order[0])
			joint := check.Begin(func() error { return obtainAll(t, one, "a", "b").ExecuteLocked(t.Context(), nothing) })
			time.Sleep(100 * time.Millisecond) // it waits
			must(t, check.Value(one.TryLockFor(first.Context(), order[1], time.Minute))(t).Unlock(t.Context()))
			must(t, first.Unlock(t.Context()))
			must(t, <-joint)
		}
	})
}

// While another process has one of the keys, the others are free for callers of this process.
func TestJoint_FreeKeyOfAWaitingOne(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one, other := twoRegistries(t, &sqllock.RegistryOptions{TTL: time.Hour, NoRenew: true})
		b := tryKey(t, other, "b")
		const waiters = 5
		done := make(chan error, waiters)
		for range waiters {
			go func() { done <- obtainAll(t, one, "a", "b", "c").ExecuteLocked(t.Context(), nothing) }()
		}
		time.Sleep(2 * time.Second)
		for range 10 {
			for _, key := range []string{"a", "c"} {
				lease := tryKey(t, one, key)
				time.Sleep(50 * time.Millisecond)
				must(t, lease.Unlock(t.Context()))
			}
		}
		must(t, b.Unlock(t.Context()))
		for range waiters {
			must(t, <-done)
		}
	})
}

// The queue at each key is longer than any turn of a joint lock. That gets its keys all the same, and
// keeps none of them for long from those that wait.
func TestJoint_BesideLongQueues(t *testing.T) {
	t.Parallel()
	for _, hold := range []time.Duration{500 * time.Millisecond, 3 * time.Second} {
		runInBubble(t, hold.String(), func(t *testing.T) {
			one, _ := twoRegistries(t, &sqllock.RegistryOptions{HandOff: true, NoRenew: true})
			ctx, cancel := context.WithCancel(t.Context())
			keys := []string{"a", "b"}
			freed, unused := make([]time.Time, 2), make([]time.Duration, 2) // the longest that each was free
			var working sync.WaitGroup
			for i := range 12 {
				working.Go(func() {
					for ctx.Err() == nil {
						_ = one.ExecuteLocked(ctx, keys[i%2], func(context.Context) error {
							if !freed[i%2].IsZero() {
								unused[i%2] = max(unused[i%2], time.Since(freed[i%2]))
							}
							time.Sleep(hold)
							freed[i%2] = time.Now()
							return nil
						})
					}
				})
			}
			time.Sleep(10 * time.Second)
			for range 5 {
				began := time.Now()
				lease := check.Value(obtainAll(t, one, keys...).TryLockFor(t.Context(), 3*time.Minute))(t)
				t.Logf("waited for %v", time.Since(began))
				must(t, lease.Unlock(t.Context()))
			}
			cancel()
			working.Wait()
			if longest := slices.Max(unused); longest > 2100*time.Millisecond {
				t.Errorf("a key was free for %v", longest)
			}
		})
	}
}

// Callers of one process wait for each other in the order of the keys. Otherwise each would keep keys that others
// want while it waits for theirs, and they would acquire fewer than half as many locks.
func TestJoint_InTheOrderOfTheKeys(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one, _ := twoRegistries(t, nil)
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		var acquired atomic.Int32
		var working sync.WaitGroup
		keys := []string{"a", "b", "c", "d", "e", "f"}
		for i := range 2 * len(keys) {
			lock := obtainAll(t, one, keys[i%6], keys[(i+1+i/6)%6], keys[(i+3)%6])
			working.Go(func() {
				for ctx.Err() == nil {
					_ = lock.ExecuteLocked(ctx, func(context.Context) error {
						acquired.Add(1)
						time.Sleep(10 * time.Millisecond) // the hold, in virtual time
						return nil
					})
				}
			})
		}
		working.Wait()
		if n := acquired.Load(); n < 240 {
			t.Errorf("acquired %d times", n)
		}
	})
}

// A row is not handed over to a joint lock, which needs others too, nor past it.
func TestJoint_HandOff(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one, _ := twoRegistries(t, &sqllock.RegistryOptions{HandOff: true, TTL: time.Hour, NoRenew: true})
		first := tryKey(t, one, "a")
		tokens := make(chan int64, 3)
		for _, keys := range [][]string{{"a", "b"}, {"a"}, {"a", "b"}} {
			lock := obtainAll(t, one, keys...)
			go func() {
				lease, err := lock.Lock(t.Context())
				is(t, err, nil)
				tokens <- lease.Token()
				is(t, lease.Unlock(t.Context()), nil)
			}()
			time.Sleep(time.Millisecond) // they queue in this order
		}
		must(t, first.Unlock(t.Context()))
		last := first.Token()
		for range 3 {
			token := <-tokens
			if token <= last {
				t.Errorf("token %d after %d", token, last)
			}
			last = token
		}
		time.Sleep(time.Second)
		check.Equal(t, "rows", len(check.Value(one.Repository().List(t.Context()))(t)), 0)
	})
}

// A waiter subscribes to the row that is in the way, and to the next one when that is free.
func TestJoint_WokenUpByTheRowInTheWay(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db, waker := migrated(t), &shared.Waker{}
		repository := newRepository(t, db.DB, nil)
		holder := newRegistry(t, repository, &sqllock.RegistryOptions{TTL: never, NoRenew: true})
		leases := make(map[string]*sqllock.Lease)
		for _, key := range []string{"b", "c"} {
			leases[key] = tryKey(t, holder, key)
			time.Sleep(time.Minute) // c lasts longer
		}
		waiting := newRegistry(t, newRepository(t, db.DB, nil), &sqllock.RegistryOptions{IdleBetweenTries: never, TTL: never, Waker: waker, NoRenew: true})
		acquired := check.Begin(func() error { return obtainAll(t, waiting, "a", "b", "c").ExecuteLocked(t.Context(), nothing) })
		// watched returns the key that the waiter is subscribed to.
		watched := func() string {
			synctest.Wait()
			topics, subscriptions := waker.Seen()
			if subscriptions != 1 {
				t.Fatalf("%d subscriptions", subscriptions)
			}
			names := check.Value(sqltext.NamesFor("INT_"))(t)
			for _, key := range []string{"a", "b", "c"} {
				lockKey := check.Value(repository.LockKey(key))(t)
				if topics[len(topics)-1] == names.Topic("DEFAULT", lockKey) {
					return key
				}
			}
			t.Fatalf("watched %q", topics)
			return ""
		}
		check.Equal(t, "watches", watched(), "c")
		// b is taken anew, and lasts longest, when c is free.
		must(t, leases["b"].RenewFor(t.Context(), 2*never))
		must(t, leases["c"].Unlock(t.Context()))
		waker.WakeAll()
		check.Equal(t, "watches", watched(), "b")
		must(t, leases["b"].Unlock(t.Context()))
		waker.WakeAll()
		must(t, <-acquired)
	})
}

// The rows of a joint lock have a place in the cache each, and none is left pinned.
func TestJoint_CacheCapacity(t *testing.T) {
	t.Parallel()
	one, _ := twoRegistries(t, &sqllock.RegistryOptions{CacheCapacity: 3, NoRenew: true})
	for range 3 {
		is(t, check.ErrorOf(obtainAll(t, one, "a", "b", "c", "d").TryLock(t.Context())), sqllock.ErrCapacity)
		lease := try(t, obtainAll(t, one, "a", "b", "c"))
		is(t, check.ErrorOf(one.TryLock(t.Context(), "d")), sqllock.ErrCapacity)
		check.Equal(t, "forgotten", check.Value(one.ExpireUnusedOlderThan(0))(t), 0)
		must(t, lease.Unlock(t.Context()))
	}
	check.Equal(t, "forgotten", check.Value(one.ExpireUnusedOlderThan(0))(t), 3)
}

// The minimum hold keeps the rows that are left, also if one is lost.
func TestJoint_MinimumHoldWithoutOneRow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one, other := twoRegistries(t, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true})
		lease := try(t, obtainAll(t, one, "a", "b", "c").WithMinHold(10*time.Second))
		must(t, check.ErrorOf(other.Repository().Delete(t.Context(), lease.Keys()[0], lease.Holder())))
		is(t, lease.Unlock(t.Context()), sqllock.ErrLockLost)
		time.Sleep(9 * time.Second)
		for _, key := range lease.Keys()[1:] {
			if _, err := other.TryLock(t.Context(), key); !errors.Is(err, sqllock.ErrNotAcquired) {
				t.Errorf("%s: %v", key, err)
			}
		}
		time.Sleep(2 * time.Second)
		must(t, try(t, obtainAll(t, other, "a", "b", "c")).Unlock(t.Context()))
	})
}

// To find out that many rows are gone takes no statement for each of them.
func TestJoint_UnlockOfALostOne(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		keys := make([]string, 500)
		for i := range keys {
			keys[i] = fmt.Sprint(i)
		}
		s.lock = obtainAll(t, s.registry, keys...)
		lease := held(s)
		must(t, s.repository.ReleaseAll(t.Context()))
		s.connector.Follow(func(context.Context, flaky.Moment) error { return nil }) // counts from here
		is(t, lease.Unlock(t.Context()), sqllock.ErrLockLost)
		s.settle(nil, nil)
	})
}
