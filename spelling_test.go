package sqllock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// Two spellings of a UUID are one row.
const (
	lowerCase = "6e8bc430-9c3a-11d9-9669-0800200c9a66"
	upperCase = "6E8BC430-9C3A-11D9-9669-0800200C9A66"
)

func TestASpellingEntersTheLockOfAnother(t *testing.T) {
	t.Parallel()
	s := newFixture(t, sqllock.Autocommit)
	outer, err := obtain(t, s.registry, lowerCase).Lock(t.Context())
	must(t, err)
	inner, err := obtain(t, s.registry, upperCase).TryLock(outer.Context())
	must(t, err)
	if inner.Holder() != outer.Holder() || inner.Token() != outer.Token() {
		t.Errorf("%s, %s are two holders", inner.Holder(), outer.Holder())
	}
	if inner.Key() != upperCase || outer.Key() != lowerCase {
		t.Errorf("keys %s, %s", inner.Key(), outer.Key())
	}
	must(t, s.registry.RenewLock(outer.Context(), upperCase))
	must(t, inner.Unlock(t.Context()))
	must(t, s.registry.RenewLock(outer.Context(), upperCase)) // outer holds it
	must(t, outer.Unlock(t.Context()))
	must(t, s.registry.ExecuteLocked(t.Context(), upperCase, func(ctx context.Context) error {
		lease, err := s.registry.LeaseFrom(ctx, lowerCase)
		if err != nil || lease.Key() != upperCase {
			t.Error(lease.Key(), err)
		}
		return s.registry.ExecuteLockedFor(ctx, lowerCase, 0, func(context.Context) error { return nil })
	}))
}

// They queue for one local lock, so that only the first of them talks to the database.
func TestSpellingsShareALocalLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		lease, err := obtain(t, s.registry, lowerCase).Lock(t.Context())
		must(t, err)
		s.connector.Follow(nil) // count from here
		upper := obtain(t, s.registry, upperCase)
		_, err = upper.TryLockFor(t.Context(), time.Second)
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Key != upperCase || held.Holder != lease.Holder() {
			t.Error(err)
		}
		if n := s.connector.Count(); n > 0 {
			t.Errorf("%d statements while the process itself has the lock", n)
		}
		next := make(chan *sqllock.Lease)
		go func() {
			lease, err := upper.Lock(t.Context())
			if err != nil {
				t.Error(err)
			}
			next <- lease
		}()
		time.Sleep(time.Second)
		if held := s.registry.Held(); len(held) != 1 || held[0].Key != lowerCase || held[0].Waiting != 1 {
			t.Error(held)
		}
		must(t, lease.Unlock(t.Context()))
		if lease = <-next; lease.Key() != upperCase {
			t.Error(lease.Key())
		}
		if held := s.registry.Held(); len(held) != 1 || held[0].Key != upperCase {
			t.Error(held)
		}
		must(t, lease.Unlock(t.Context()))
	})
}

// The handle that is cached is that of the spelling that came first.
func TestHandlesOfSpellings(t *testing.T) {
	t.Parallel()
	s := newFixture(t, sqllock.Autocommit)
	registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{CacheCapacity: 1})
	lower := obtain(t, registry, lowerCase)
	lease, err := lower.Lock(t.Context())
	must(t, err)
	upper := obtain(t, registry, upperCase) // no second entry
	if lower.Key() != lowerCase || upper.Key() != upperCase {
		t.Errorf("keys %s, %s", lower.Key(), upper.Key())
	}
	if obtain(t, registry, lowerCase) != lower {
		t.Error("another object for the same key")
	}
	must(t, lease.Unlock(t.Context()))
	if n, err := registry.ExpireUnusedOlderThan(0); n != 1 || err != nil {
		t.Error(n, err)
	}
}

// So it is with any mapper.
func TestKeysThatAreMappedToOne(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	r := newRepository(t, db.DB, &sqllock.RepositoryOptions{Keys: func(key string) (string, error) {
		return sqllock.PlainKeys(strings.ToLower(key))
	}})
	registry := newRegistry(t, r, nil)
	outer, err := obtain(t, registry, "Orders").Lock(t.Context())
	must(t, err)
	inner, err := obtain(t, registry, "ORDERS").TryLock(outer.Context())
	must(t, err)
	must(t, inner.Unlock(t.Context()))
	must(t, outer.Unlock(t.Context()))
}
