package rwlock_test

import (
	"context"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/rwlock"
)

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
