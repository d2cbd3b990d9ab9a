package rwlock_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// TestBadInput gives ErrInvalid, and sends nothing.
func TestBadInput(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p := f.process()
		p.network.Follow(nil)
		f.Is(check.ErrorOf(rwlock.New(nil, key)), sqllock.ErrInvalid)
		f.Is(check.ErrorOf(rwlock.New(p.registry, "")), sqllock.ErrInvalid)
		f.Is(check.ErrorOf(p.rw.TryRLockFor(f.Context(), -1)), sqllock.ErrInvalid)
		f.Is(check.ErrorOf(p.rw.TryLockFor(f.Context(), -1)), sqllock.ErrInvalid)
		for _, lock := range []method{p.rw.WithTTL(sqllock.MinTTL - 1).RLock, p.rw.WithTTL(0).Lock} {
			f.Is(check.ErrorOf(lock(f.Context())), sqllock.ErrInvalid)
		}
		f.Is(p.rw.ExecuteLocked(f.Context(), nil), sqllock.ErrInvalid)
		f.Is(p.rw.ExecuteLockedFor(f.Context(), 0, nil), sqllock.ErrInvalid)
		f.Is(p.rw.ExecuteRLocked(f.Context(), nil), sqllock.ErrInvalid)
		f.Is(p.rw.ExecuteRLockedFor(f.Context(), 0, nil), sqllock.ErrInvalid)
		if n := p.network.Count(); n > 0 {
			f.Errorf("%d operations", n)
		}
		f.Must(p.registry.Close(f.Context()))
		f.Is(check.ErrorOf(rwlock.New(p.registry, key)), sqllock.ErrClosed)
	})
}

// TestAPlainKeyLeavesRoom has a mapper that keeps keys as they are.
func TestAPlainKeyLeavesRoom(t *testing.T) {
	inBubble(t, func(f *fixture) {
		registry := f.Registry(f.DB.DB, sqllock.RepositoryOptions{Keys: sqllock.PlainKeys}, sqllock.RegistryOptions{})
		f.Is(check.ErrorOf(rwlock.New(registry, strings.Repeat("k", 25))), sqllock.ErrInvalid)
		lock := check.Value(rwlock.New(registry, strings.Repeat("k", 24)))(f)
		f.Unlock(f.get(lock.Lock))
	})
}

// TestReaders shows who reads, the oldest first.
func TestReaders(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		check := func(wanted ...rwlock.Holder) {
			f.Helper()
			readers := check.Value(p.rw.Readers(f.Context()))(f)
			if len(readers) != len(wanted) {
				f.Fatalf("%+v, want %+v", readers, wanted)
			}
			for i := range readers {
				if readers[i] != wanted[i] {
					f.Errorf("%+v, want %+v", readers[i], wanted[i])
				}
			}
		}
		check()
		first := f.get(p.rw.WithTTL(time.Minute).RLock)
		time.Sleep(time.Second)
		second := f.get(other.rw.RLock)
		time.Sleep(time.Second)
		check(rwlock.Holder{ID: first.Holder(), Age: 2 * time.Second, Left: 58 * time.Second},
			rwlock.Holder{ID: second.Holder(), Age: time.Second, Left: ttl - time.Second})
		f.Unlock(first)
		time.Sleep(ttl)
		check() // the second one has expired
		writer := f.get(p.rw.Lock)
		check()
		f.Unlock(writer)
	})
}

// TestExecute runs a function under a lease, and releases that. What a semaphore does after a panic, or a loss, is
// done by the same code.
func TestExecute(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		failed := errors.New("failed")
		for _, execute := range []func(context.Context, func(context.Context) error) error{
			p.rw.ExecuteLocked,
			p.rw.ExecuteRLocked,
			func(ctx context.Context, fn func(context.Context) error) error {
				return p.rw.ExecuteLockedFor(ctx, 0, fn)
			},
			func(ctx context.Context, fn func(context.Context) error) error {
				return p.rw.ExecuteRLockedFor(ctx, time.Second, fn)
			},
		} {
			f.Is(execute(f.Context(), func(ctx context.Context) error {
				check.Equal(f, "leases", len(p.registry.LeasesFrom(ctx)), 1)
				check.Is(f, check.ErrorOf(other.rw.TryLock(ctx)), sqllock.ErrNotAcquired)
				return failed
			}), failed)
			p.rows(0)
		}
	})
}

// TestSpellingsAreOneLock has a reader and a writer write the same key in two ways.
func TestSpellingsAreOneLock(t *testing.T) {
	t.Parallel()
	for name, one := range map[string]struct {
		keys         sqllock.KeyMapper
		key, another string
	}{
		"a UUID":                {nil, "0a1b2c3d-0000-4000-8000-00000000abcd", "0A1B2C3D-0000-4000-8000-00000000ABCD"},
		"a key and its UUID":    {nil, key, lockKey},
		"a mapper that trims":   {func(key string) (string, error) { return sqllock.SpringKeys(strings.TrimSpace(key)) }, key, " " + key},
		"a mapper of two cases": {func(key string) (string, error) { return sqllock.PlainKeys(strings.ToLower(key)) }, key, "Prices"},
	} {
		runInBubble(t, name, func(f *fixture) {
			p, other := f.processMapping(one.keys), f.processMapping(one.keys)
			lock, another, others := f.lockOf(p, one.key), f.lockOf(p, one.another), f.lockOf(other, one.another)
			reader := f.get(lock.RLock)
			for _, lock := range []*rwlock.Lock{another, others} {
				check.Is(f, check.ErrorOf(lock.TryLock(f.Context())), sqllock.ErrNotAcquired)
			}
			check.Is(f, check.ErrorOf(another.Lock(reader.Context())), sqllock.ErrInvalid)
			if inner, err := another.RLock(reader.Context()); err != nil || inner.Holder() != reader.Holder() {
				f.Error(inner, err)
			} else {
				f.Unlock(inner)
			}
			f.Unlock(reader)
			p.rows(0)
		})
	}
}

// TestAMapperMustDistinguishTheRows has two readers' keys mapped to one row.
func TestAMapperMustDistinguishTheRows(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p := f.processMapping(func(key string) (string, error) {
			return strings.Replace(key, "catalog reader 17", "catalog reader 1", 1), nil
		})
		check.Is(f, check.ErrorOf(rwlock.New(p.registry, "catalog")), sqllock.ErrInvalid)
	})
}

// TestATryBesideAReaderWritesNothing: it must not keep new readers out for a moment.
func TestATryBesideAReaderWritesNothing(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p := f.process()
		reader := f.get(p.rw.RLock)
		p.network.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op != flaky.Query {
				f.Errorf("%v", m)
			}
			return nil
		})
		f.refused(p.rw.TryLock, reader.Holder())
		p.network.Follow(nil)
		f.Unlock(reader)
		p.rows(0)
	})
}

// TestATryHasNotWaited has a database that takes its time.
func TestATryHasNotWaited(t *testing.T) {
	inBubble(t, func(f *fixture) {
		p, other := f.process(), f.process()
		reader := f.get(p.rw.RLock)
		other.network.Follow(func(context.Context, flaky.Moment) error {
			time.Sleep(50 * time.Millisecond)
			return nil
		})
		_, err := other.rw.TryLock(f.Context())
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Waited != 0 {
			f.Errorf("%+v: %v", held, err)
		}
		other.network.Follow(nil)
		time.Sleep(time.Second) // what the process has sent in the background has its answer
		f.Unlock(reader)
	})
}
