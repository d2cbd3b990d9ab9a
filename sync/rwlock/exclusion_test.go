package rwlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// A room counts who is in.
type room struct {
	t                *testing.T
	readers, writers atomic.Int32
	entered          atomic.Int32
}

func (r *room) read(context.Context) error {
	r.readers.Add(1)
	defer r.readers.Add(-1)
	return r.stay()
}

func (r *room) write(context.Context) error {
	r.writers.Add(1)
	defer r.writers.Add(-1)
	return r.stay()
}

// stay lets others run, and checks who is in before and after.
func (r *room) stay() error {
	r.entered.Add(1)
	for range 2 {
		if readers, writers := r.readers.Load(), r.writers.Load(); writers > 1 || writers == 1 && readers > 0 {
			r.t.Errorf("%d writers and %d readers", writers, readers)
		}
		time.Sleep(time.Millisecond)
	}
	return nil
}

// TestNoReaderIsBesideAWriter has readers and writers of two processes lock in every way.
func TestNoReaderIsBesideAWriter(t *testing.T) {
	t.Parallel()
	for name, opts := range map[string]sqllock.RegistryOptions{
		"default":    {TTL: ttl},
		"auto-renew": {TTL: time.Second, AutoRenew: true},
		"hand-off":   {TTL: ttl, HandOff: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(f *fixture) {
				const workers, rounds = 3, 6
				room := &room{t: f.T}
				var all sync.WaitGroup
				processes := []*process{f.processWith(opts), f.processWith(opts)}
				for _, p := range processes {
					for range workers {
						all.Go(func() {
							for range rounds {
								f.must(p.rw.ExecuteRLocked(f.Context(), room.read))
							}
						})
						all.Go(func() {
							for range rounds {
								f.must(p.rw.ExecuteLocked(f.Context(), room.write))
							}
						})
						all.Go(func() {
							for range rounds {
								f.tries(p.rw.ExecuteRLockedFor(f.Context(), 0, room.read))
								f.tries(p.rw.ExecuteLockedFor(f.Context(), 0, room.write))
								f.tries(p.rw.ExecuteLockedFor(f.Context(), time.Millisecond, room.write))
							}
						})
					}
				}
				all.Wait()
				if n := room.entered.Load(); n < 2*2*workers*rounds {
					f.Errorf("%d times", n)
				}
				processes[0].rows(0)
			})
		})
	}
}

// tries checks the error of a call that may be refused.
func (f *fixture) tries(err error) {
	f.Helper()
	if err != nil && !errors.Is(err, sqllock.ErrNotAcquired) {
		f.Error(err)
	}
}

// TestAWriterAtEveryMomentOfAReader has a reader and a writer try, one of them between the statements
// of the other. At most one of them gets in, and then the other one sees that.
func TestAWriterAtEveryMomentOfAReader(t *testing.T) {
	t.Parallel()
	for name, of := range map[string]func(p *process) method{
		"reader": func(p *process) method { return p.rw.TryRLock },
		"writer": func(p *process) method { return p.rw.TryLock },
	} {
		other := func(p *process) method {
			if name == "reader" {
				return p.rw.TryLock
			}
			return p.rw.TryRLock
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(f *fixture) {
				slow, quick := f.process(), f.process()
				second, moments := 0, 0
				for n, reached := 1, true; reached; n++ {
					reached = false
					for _, done := range []bool{false, true} {
						var between outcome
						slow.network.Follow(func(_ context.Context, m flaky.Moment) error {
							if m.N == n && m.Done == done {
								reached = true
								between.lease, between.err = other(quick)(f.Context()) //nolint:contextcheck // it is another caller
							}
							return nil
						})
						lease, err := of(slow)(f.Context())
						slow.network.Follow(nil)
						if !errors.Is(err, sqllock.ErrDatabase) { // a transaction that was stopped has the file to itself
							f.tries(err)
						}
						if lease != nil && between.lease != nil {
							f.Errorf("both are in at moment %d, done: %v", n, done)
						}
						if lease != nil {
							f.unlock(lease)
						}
						if between.lease != nil {
							second++
							f.unlock(between.lease)
						}
						moments++
					}
					slow.rows(0)
				}
				if second == 0 || second == moments {
					f.Errorf("the second one got in at %d of %d moments", second, moments)
				}
			})
		})
	}
}

// TestAPlainLockKeepsOthersOut has a plain lock of the key, as Java has it, exclude writers and new
// readers. It does not wait for readers that are in.
func TestAPlainLockKeepsOthersOut(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		p, java := f.process(), f.process()
		reader := f.get(p.rw.RLock)
		plain, err := java.registry.TryLock(f.Context(), key)
		f.must(err)
		f.refused(p.rw.TryRLock, plain.Holder())
		f.refused(p.rw.TryLock, plain.Holder())
		f.unlock(reader)
		f.refused(p.rw.TryLock, plain.Holder())
		waiting := f.start(f.Context(), p.rw.RLock)
		f.waits(waiting)
		f.unlock(plain)
		reader = f.gets(waiting)

		// A writer that waits for a reader has the row, so a plain lock waits for the writer.
		writing := f.start(f.Context(), p.rw.Lock)
		if _, err := java.registry.TryLock(f.Context(), key); !errors.Is(err, sqllock.ErrNotAcquired) {
			f.Error(err)
		}
		f.unlock(reader)
		f.unlock(f.gets(writing))
		p.rows(0)
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
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			inBubble(t, func(f *fixture) {
				p, other := f.processMapping(one.keys), f.processMapping(one.keys)
				lock, another, others := f.lockOf(p, one.key), f.lockOf(p, one.another), f.lockOf(other, one.another)
				reader := f.get(lock.RLock)
				for _, lock := range []*rwlock.Lock{another, others} {
					if _, err := lock.TryLock(f.Context()); !errors.Is(err, sqllock.ErrNotAcquired) {
						f.Error(err)
					}
				}
				if _, err := another.Lock(reader.Context()); !errors.Is(err, sqllock.ErrInvalid) {
					f.Error(err)
				}
				if inner, err := another.RLock(reader.Context()); err != nil || inner.Holder() != reader.Holder() {
					f.Error(inner, err)
				} else {
					f.unlock(inner)
				}
				f.unlock(reader)
				p.rows(0)
			})
		})
	}
}

// TestAMapperMustDistinguishTheRows has two readers' keys mapped to one row.
func TestAMapperMustDistinguishTheRows(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		p := f.processMapping(func(key string) (string, error) {
			return strings.Replace(key, "catalog reader 17", "catalog reader 1", 1), nil
		})
		if _, err := rwlock.New(p.registry, "catalog"); !errors.Is(err, sqllock.ErrInvalid) {
			f.Error(err)
		}
	})
}

// TestATryBesideAReaderWritesNothing: it must not keep new readers out for a moment.
func TestATryBesideAReaderWritesNothing(t *testing.T) {
	t.Parallel()
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
		f.unlock(reader)
		p.rows(0)
	})
}
