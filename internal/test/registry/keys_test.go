package registry_test

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestKeys_MapperIsChecked: a KeyMapper of the user's own may be wrong.
func TestKeys_MapperIsChecked(t *testing.T) {
	t.Parallel()
	r := newRepository(t, migrated(t).DB, &sqllock.RepositoryOptions{
		Keys: func(key string) (string, error) { return strings.Repeat(key, 37), nil },
	})
	is(t, check.ErrorOf(newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}).Obtain("k")), sqllock.ErrInvalid)
}

func TestKeys_Plain(t *testing.T) {
	t.Parallel()
	for _, key := range []string{"k", " k", "orders/42", "ключ", strings.Repeat("é", 36)} {
		check.Equal(t, "key", check.Value(sqllock.PlainKeys(key))(t), key)
	}
	for _, key := range []string{"", "k ", " ", "k\x00", "a\nb", "\xff", strings.Repeat("k", 37), strings.Repeat("é", 37)} {
		if _, err := sqllock.PlainKeys(key); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%q: %v", key, err)
		}
	}
}

func FuzzKeys(f *testing.F) {
	f.Add("orders/42")
	f.Add("7B0A2F5C-3C57-4F43-9E7C-0B0F6D1F2A3B")
	f.Add("k ")
	f.Fuzz(func(t *testing.T, key string) {
		for _, mapper := range []sqllock.KeyMapper{sqllock.SpringKeys, sqllock.PlainKeys} {
			got, err := mapper(key)
			if err != nil {
				if !errors.Is(err, sqllock.ErrInvalid) {
					t.Errorf("%q: %v", key, err)
				}
				continue
			}
			if n := utf8.RuneCountInString(got); n == 0 || n > 36 || strings.HasSuffix(got, " ") {
				t.Errorf("%q gives %q", key, got)
			}
			// A LOCK_KEY that a listing shows is a key of that row.
			for _, key := range []string{key, got} {
				if again, err := mapper(key); again != got || err != nil {
					t.Errorf("%q gives %q and %q, %v", key, got, again, err)
				}
			}
		}
	})
}

// Two spellings of a UUID are one row.
const (
	lowerCase = "6e8bc430-9c3a-11d9-9669-0800200c9a66"
	upperCase = "6E8BC430-9C3A-11D9-9669-0800200C9A66"
)

// Keys that are mapped to one LOCK_KEY are one lock: a caller that holds one enters the other.
func TestKeys_SpellingEntersTheLockOfAnother(t *testing.T) {
	t.Parallel()
	folds := func(key string) (string, error) { return sqllock.PlainKeys(strings.ToLower(key)) }
	for name, test := range map[string]struct {
		keys         sqllock.KeyMapper
		lower, upper string
	}{"a UUID": {nil, lowerCase, upperCase}, "a mapper of one's own": {folds, "orders", "ORDERS"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry := newRegistry(t, newRepository(t, migrated(t).DB, &sqllock.RepositoryOptions{Keys: test.keys}), nil)
			outer := locked(t, obtain(t, registry, test.lower))
			inner := check.Value(obtain(t, registry, test.upper).TryLock(outer.Context()))(t)
			if inner.Holder() != outer.Holder() || inner.Token() != outer.Token() {
				t.Errorf("%s, %s are two holders", inner.Holder(), outer.Holder())
			}
			if inner.Key() != test.upper || outer.Key() != test.lower {
				t.Errorf("keys %s, %s", inner.Key(), outer.Key())
			}
			must(t, registry.RenewLock(outer.Context(), test.upper))
			must(t, inner.Unlock(t.Context()))
			must(t, registry.RenewLock(outer.Context(), test.upper)) // outer holds it
			must(t, outer.Unlock(t.Context()))
			must(t, registry.ExecuteLocked(t.Context(), test.upper, func(ctx context.Context) error {
				lease, err := registry.LeaseFrom(ctx, test.lower)
				if err != nil || lease.Key() != test.upper {
					t.Error(lease.Key(), err)
				}
				return registry.ExecuteLocked(ctx, test.lower, nothing)
			}))
		})
	}
}

// They queue for one local lock, so that only the first of them talks to the database.
func TestKeys_SpellingsShareALocalLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		lease := locked(t, obtain(t, s.registry, lowerCase))
		s.connector.Follow(nil) // count from here
		upper := obtain(t, s.registry, upperCase)
		_, err := upper.TryLockFor(t.Context(), time.Second)
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
			is(t, err, nil)
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
func TestKeys_HandlesOfSpellings(t *testing.T) {
	t.Parallel()
	s := newFixture(t, sqllock.Autocommit)
	registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{CacheCapacity: 1, NoRenew: true})
	lower := obtain(t, registry, lowerCase)
	lease := locked(t, lower)
	upper := obtain(t, registry, upperCase) // no second entry
	if lower.Key() != lowerCase || upper.Key() != upperCase {
		t.Errorf("keys %s, %s", lower.Key(), upper.Key())
	}
	if obtain(t, registry, lowerCase) != lower {
		t.Error("another object for the same key")
	}
	must(t, lease.Unlock(t.Context()))
	check.Equal(t, "forgotten", check.Value(registry.ExpireUnusedOlderThan(0))(t), 1)
}

// TestKeys_SpringAsJavaMapsThem has vectors that Spring's own jar has made. They are
// written by TestKeys in dev/interop/spring.
func TestKeys_SpringAsJavaMapsThem(t *testing.T) {
	t.Parallel()
	text := check.Value(os.ReadFile("../../../testdata/spring_keys.tsv"))(t)
	keys := 0
	for line := range strings.Lines(string(text)) {
		quoted, want, ok := strings.Cut(strings.TrimSuffix(line, "\n"), "\t")
		var key string
		if err := json.Unmarshal([]byte(quoted), &key); err != nil || !ok {
			t.Fatalf("line %q: %v", line, err)
		}
		if got, err := sqllock.SpringKeys(key); err != nil || got != want {
			t.Errorf("%q: %q, %v, want %q", key, got, err, want)
		}
		keys++
	}
	if keys < 500 {
		t.Errorf("only %d keys", keys)
	}
	for _, key := range []string{"", "\xff", "a\xc3"} { // Java cannot write them
		is(t, check.ErrorOf(sqllock.SpringKeys(key)), sqllock.ErrInvalid)
	}
}
