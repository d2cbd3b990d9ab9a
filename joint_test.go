package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

func obtainAll(t *testing.T, r *sqllock.Registry, keys ...string) *sqllock.JdbcLock {
	t.Helper()
	l, err := r.ObtainAll(keys...)
	must(t, err)
	return l
}

// twoRegistries returns two registries, as of two processes, over one database.
func twoRegistries(t *testing.T, opts *sqllock.RegistryOptions) (one, other *sqllock.Registry) {
	t.Helper()
	db := migrated(t)
	return newRegistry(t, newRepository(t, db.DB, nil), opts), newRegistry(t, newRepository(t, db.DB, nil), opts)
}

func TestAJointLockIsAllOrNothing(t *testing.T) {
	t.Parallel()
	one, other := twoRegistries(t, nil)
	b, err := other.TryLock(t.Context(), "b")
	must(t, err)
	lock := obtainAll(t, one, "a", "b", "c")
	lease, err := lock.TryLock(t.Context())
	var held *sqllock.HeldError
	if lease != nil || !errors.As(err, &held) || held.Key != "b" || held.Holder != b.Holder() {
		t.Fatal(lease, err)
	}
	if rows, err := one.Repository().PeekAll(t.Context(), "a", "b", "c"); err != nil || len(rows) != 1 || rows["b"].Holder != b.Holder() {
		t.Fatal(rows, err)
	}
	must(t, b.Unlock(t.Context()))
	lease, err = lock.TryLock(t.Context())
	must(t, err)
	if lease.Token() <= b.Token() {
		t.Error(lease.Token(), b.Token())
	}
	if keys := slices.Sorted(slices.Values(lease.Keys())); !slices.Equal(keys, []string{"a", "b", "c"}) {
		t.Error(keys)
	}
	for _, key := range lease.Keys() {
		_, err := other.TryLock(t.Context(), key)
		if !errors.As(err, &held) || held.Key != key || held.Holder != lease.Holder() {
			t.Error(err)
		}
		if _, err := one.TryLock(t.Context(), key); !errors.As(err, &held) || held.Key != key {
			t.Error(err)
		}
	}
	must(t, lease.Renew(t.Context()))
	must(t, lease.Unlock(t.Context()))
	if rows, err := one.Repository().List(t.Context()); err != nil || len(rows) != 0 {
		t.Error(rows, err)
	}
}

// In one registry the keys of a joint lock exclude the single ones, whoever comes first.
func TestAJointLockInItsOwnRegistry(t *testing.T) {
	t.Parallel()
	one, _ := twoRegistries(t, nil)
	single, err := one.TryLock(t.Context(), "b")
	must(t, err)
	lock := obtainAll(t, one, "c", "b", "a")
	var held *sqllock.HeldError
	if _, err := lock.TryLock(t.Context()); !errors.As(err, &held) || held.Key != "b" || held.Holder != single.Holder() {
		t.Fatal(err)
	}
	for _, key := range []string{"a", "c"} { // the refused try has left nothing behind
		lease, err := one.TryLock(t.Context(), key)
		must(t, err)
		must(t, lease.Unlock(t.Context()))
	}
	must(t, single.Unlock(t.Context()))
}

func TestReEntryIntoAJointLock(t *testing.T) {
	t.Parallel()
	one, _ := twoRegistries(t, nil)
	outer, err := obtainAll(t, one, "a", "b", "c").Lock(t.Context())
	must(t, err)
	for _, keys := range [][]string{{"a"}, {"c"}, {"c", "a"}, {"a", "b", "c"}} {
		inner, err := obtainAll(t, one, keys...).TryLock(outer.Context())
		must(t, err)
		if inner.Token() != outer.Token() {
			t.Error(keys, inner.Token())
		}
		must(t, inner.Unlock(t.Context()))
	}
	if _, err := obtainAll(t, one, "a", "d").TryLock(outer.Context()); !errors.Is(err, sqllock.ErrInvalid) {
		t.Error(err)
	}
	if lease, err := one.LeaseFrom(outer.Context(), "b"); err != nil || lease != outer {
		t.Error(lease, err)
	}
	must(t, one.RenewLock(outer.Context(), "c"))
	if leases := one.LeasesFrom(outer.Context()); len(leases) != 1 || leases[0] != outer {
		t.Error(leases)
	}
	must(t, outer.Unlock(t.Context()))
	if leases := one.LeasesFrom(outer.Context()); len(leases) != 0 {
		t.Error(leases)
	}
}

func TestKeysOfAJointLock(t *testing.T) {
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
	lease, err := obtainAll(t, one, many[1:]...).TryLock(t.Context())
	must(t, err)
	if rows, err := one.Repository().PeekAll(t.Context(), many...); err != nil || len(rows) != sqllock.MaxKeys {
		t.Error(len(rows), err)
	}
	must(t, lease.Renew(t.Context()))
	must(t, lease.Unlock(t.Context()))
	if lock := obtainAll(t, one, "a", "a"); lock != obtain(t, one, "a") {
		t.Error("one key is not the lock of that key")
	}
}

// A joint lease is lost with one of its rows. The others are deleted before they are acquired again in
// this process, and expire for others.
func TestAJointLeaseIsLostWithOneRow(t *testing.T) {
	t.Parallel()
	one, _ := twoRegistries(t, nil)
	lease, err := obtainAll(t, one, "a", "b", "c").TryLock(t.Context())
	must(t, err)
	_, err = one.Repository().Delete(t.Context(), "b", lease.Holder())
	must(t, err)
	if err := lease.Renew(t.Context()); !errors.Is(err, sqllock.ErrLockLost) {
		t.Fatal(err)
	}
	if !errors.Is(context.Cause(lease.Context()), sqllock.ErrLockLost) {
		t.Error(context.Cause(lease.Context()))
	}
	for _, key := range []string{"a", "b", "c"} {
		next, err := one.TryLock(t.Context(), key)
		must(t, err)
		must(t, next.Unlock(t.Context()))
	}
}

func TestAutoRenewOfAJointLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one, other := twoRegistries(t, &sqllock.RegistryOptions{AutoRenew: true, TTL: time.Second})
		lease, err := obtainAll(t, one, "a", "b").TryLock(t.Context())
		must(t, err)
		time.Sleep(time.Minute)
		for _, key := range []string{"a", "b"} {
			if _, err := other.TryLock(t.Context(), key); !errors.Is(err, sqllock.ErrNotAcquired) {
				t.Error(err)
			}
		}
		must(t, lease.Unlock(t.Context()))
	})
}

// A caller that holds b and wants a, and one that wants both, do not wait for each other for ever.
func TestAJointLockDoesNotDeadlockWithNestedOnes(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one, _ := twoRegistries(t, &sqllock.RegistryOptions{AutoRenew: true})
		for _, order := range [][2]string{{"a", "b"}, {"b", "a"}} {
			first, err := one.TryLock(t.Context(), order[0])
			must(t, err)
			joint := make(chan error, 1)
			go func() {
				lease, err := one.ObtainAll("a", "b")
				if err == nil {
					err = lease.ExecuteLocked(t.Context(), func(context.Context) error { return nil })
				}
				joint <- err
			}()
			time.Sleep(100 * time.Millisecond) // it waits
			second, err := one.TryLockFor(first.Context(), order[1], time.Minute)
			must(t, err)
			must(t, second.Unlock(t.Context()))
			must(t, first.Unlock(t.Context()))
			must(t, <-joint)
		}
	})
}

// Callers that want each key alone, and pairs in either order, all get their turns.
func TestJointLocksAmongOthers(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		one, other := twoRegistries(t, &sqllock.RegistryOptions{AutoRenew: true})
		wants := [][]string{{"a"}, {"b"}, {"a", "b"}, {"b", "a", "c"}, {"c", "b"}}
		visits := map[string]*int{"a": new(int), "b": new(int), "c": new(int)}
		done := make(chan error, 2*len(wants))
		for _, registry := range []*sqllock.Registry{one, other} {
			for _, keys := range wants {
				go func() {
					for range 20 {
						lock, err := registry.ObtainAll(keys...)
						if err == nil {
							err = lock.ExecuteLocked(t.Context(), func(context.Context) error {
								for _, key := range keys {
									*visits[key]++ // the race detector looks on
								}
								time.Sleep(3 * time.Millisecond)
								return nil
							})
						}
						if err != nil {
							done <- err
							return
						}
						time.Sleep(5 * time.Millisecond)
					}
					done <- nil
				}()
			}
		}
		for range 2 * len(wants) {
			must(t, <-done)
		}
	})
}
