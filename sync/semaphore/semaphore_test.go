package semaphore_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// TestInvalid passes what no semaphore can have.
func TestInvalid(t *testing.T) {
	inBubble(t, func(f *fixture) {
		registry := f.registry("a")
		for name, make := range map[string]func() (*semaphore.Semaphore, error){
			"no registry":      func() (*semaphore.Semaphore, error) { return semaphore.New(nil, key, 1) },
			"no permits":       func() (*semaphore.Semaphore, error) { return semaphore.New(registry, key, 0) },
			"too many permits": func() (*semaphore.Semaphore, error) { return semaphore.New(registry, key, semaphore.MaxPermits+1) },
			"no key":           func() (*semaphore.Semaphore, error) { return semaphore.New(registry, "", 1) },
			"a bad key":        func() (*semaphore.Semaphore, error) { return semaphore.New(registry, "a\n", 1) },
		} {
			if s, err := make(); s != nil || !errors.Is(err, sqllock.ErrInvalid) {
				f.Errorf("%s: %v, %v", name, s, err)
			}
		}
		a, ctx := f.semaphore(registry, 3), f.Context()
		f.acquires(a, 3) // an error must not depend on what is free
		nothing := func(context.Context) error { return nil }
		for name, call := range map[string]func() error{
			"0 permits":      func() error { return check.ErrorOf(a.TryAcquire(ctx, 0)) },
			"-1 permits":     func() error { return check.ErrorOf(a.Acquire(ctx, -1)) },
			"4 permits":      func() error { return check.ErrorOf(a.Acquire(ctx, 4)) },
			"negative wait":  func() error { return check.ErrorOf(a.TryAcquireFor(ctx, 1, -1)) },
			"negative wait2": func() error { return a.ExecuteFor(ctx, 1, -1, nothing) },
			"no function":    func() error { return a.Execute(ctx, 1, nil) },
			"no function2":   func() error { return a.ExecuteFor(ctx, 1, time.Second, nil) },
			"a short TTL":    func() error { return check.ErrorOf(a.WithTTL(sqllock.MinTTL-1).TryAcquire(ctx, 1)) },
			"no TTL":         func() error { return check.ErrorOf(a.WithTTL(0).Acquire(ctx, 1)) },
		} {
			if err := call(); !errors.Is(err, sqllock.ErrInvalid) || errors.Is(err, sqllock.ErrNotAcquired) {
				f.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestPlainKeysLeaveRoom passes the longest keys that the column can have, and one more.
func TestPlainKeysLeaveRoom(t *testing.T) {
	inBubble(t, func(f *fixture) {
		registry := f.registry("a")
		longest := 36 - len(" permit turn")
		for _, permits := range []int{10, 1000} {
			s := check.Value(semaphore.New(registry, strings.Repeat("k", longest), permits))(f)
			f.Unlock(f.acquires(s, permits))
			f.Is(check.ErrorOf(semaphore.New(registry, strings.Repeat("k", longest+1), permits)), sqllock.ErrInvalid)
		}
	})
}

// TestHandles checks what handles share, and what they do not.
func TestHandles(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", 2)
		short, renewed := a.WithTTL(2*time.Second), a.WithAutoRenew(true)
		if short.Key() != key || short.Permits() != 2 {
			f.Error(short.Key(), short.Permits())
		}
		one, other := f.acquires(short, 1), f.acquires(renewed, 1)
		f.refuses(a)
		time.Sleep(3 * time.Second)
		if err := one.Context().Err(); err == nil {
			f.Error("a lease of 2 s lasts for 3 s")
		}
		f.acquires(a, 1)
		time.Sleep(10 * ttl)
		f.Must(other.Context().Err())
		f.Unlock(f.acquires(a, 1), other)
	})
}

// TestThereIsNoReentry acquires inside a permit, also when the row of that permit was deleted.
func TestThereIsNoReentry(t *testing.T) {
	inBubble(t, func(f *fixture) {
		registry := f.registry("a")
		a := f.semaphore(registry, 4)
		outer := f.acquires(a, 1)
		inner := check.Value(a.TryAcquire(outer.Context(), 1))(f)
		if inner.Key() == outer.Key() || inner.Holder() == outer.Holder() {
			f.Errorf("%s is entered again", inner.Key())
		}
		f.Unlock(inner)
		f.Must(check.ErrorOf(registry.Repository().Delete(f.Context(), outer.Key(), outer.Holder())))
		both := check.Value(a.TryAcquire(outer.Context(), 2))(f)
		third := check.Value(a.Acquire(both.Context(), 1))(f)                         // inside a joint lease
		f.Is(check.ErrorOf(a.TryAcquire(third.Context(), 1)), sqllock.ErrNotAcquired) // one permit is free, and the caller has it already
		f.Unlock(third, both)
		f.Is(outer.Renew(f.Context()), sqllock.ErrLockLost)
		f.Is(check.ErrorOf(a.TryAcquire(context.WithoutCancel(outer.Context()), 1)), sqllock.ErrLockLost)
		f.has()
	})
}

// TestPermitsAreLoweredAndRaised has processes with different numbers of permits.
func TestPermitsAreLoweredAndRaised(t *testing.T) {
	inBubble(t, func(f *fixture) {
		three, two, five := f.process("a", 3), f.process("b", 2), f.process("c", 5)
		byKey := make(map[string]*sqllock.Lease)
		for range 3 {
			lease := f.acquires(three, 1)
			byKey[lease.Key()] = lease
		}
		f.refuses(two)
		check.Equal(f, "holders", len(check.Value(two.Holders(f.Context()))(f)), 2)
		f.Unlock(byKey["printers permit 2"])
		f.refuses(two) // it does not know of that permit
		f.Unlock(byKey["printers permit 0"])
		again := f.acquires(two, 1)
		f.refuses(two)
		rest := f.acquires(five, 3)
		f.refuses(five)
		f.refuses(three)
		f.Unlock(again, rest, byKey["printers permit 1"])
		f.has()
	})
}

// TestExecute runs functions that return, fail and panic.
func TestExecute(t *testing.T) {
	inBubble(t, func(f *fixture) {
		registry := f.registry("a")
		a := f.semaphore(registry, 3)
		failed := errors.New("failed")
		work := func(result error) func(context.Context) error {
			return func(ctx context.Context) error {
				rows := f.rows() //nolint:contextcheck // any will do
				if leases := registry.LeasesFrom(ctx); len(leases) != 1 || len(leases[0].Keys()) != 2 || len(rows) != 2 {
					f.Errorf("%v, %v", leases, rows)
				}
				return result
			}
		}
		f.Must(a.Execute(f.Context(), 2, work(nil)))
		f.has()
		f.Is(a.ExecuteFor(f.Context(), 2, time.Second, work(failed)), failed)
		f.has()
		func() {
			defer func() {
				if recover() == nil {
					f.Error("the panic does not go on")
				}
			}()
			_ = a.Execute(f.Context(), 1, func(context.Context) error { panic("as planned") })
		}()
		f.has()

		err := a.WithTTL(time.Second).Execute(f.Context(), 2, func(ctx context.Context) error {
			<-ctx.Done()
			f.Is(context.Cause(ctx), sqllock.ErrLockLost)
			return failed
		})
		f.Is(err, failed, sqllock.ErrLockLost)
		time.Sleep(time.Second)

		all := f.acquires(a, 3)
		began := time.Now()
		f.Is(a.ExecuteFor(f.Context(), 1, 2*time.Second, work(nil)), sqllock.ErrNotAcquired)
		f.Takes("ExecuteFor", began, 2*time.Second, 2*time.Second)
		f.Unlock(all)
		f.has()
	})
}

// TestSpellingsAreOneSemaphore has a KeyMapper that maps what two processes write to one LOCK_KEY.
func TestSpellingsAreOneSemaphore(t *testing.T) {
	inBubble(t, func(f *fixture) {
		spelled := func(key string) *semaphore.Semaphore {
			registry := f.Registry(f.DB.DB, sqllock.RepositoryOptions{
				Keys: func(key string) (string, error) { return sqllock.SpringKeys(strings.TrimSpace(key)) },
			}, sqllock.RegistryOptions{})
			return check.Value(semaphore.New(registry, key, 1))(f)
		}
		lease := f.acquires(spelled(key), 1)
		f.refuses(spelled(key + " "))
		f.Unlock(lease)
	})
}

// An observer that panics as a permit is acquired does not keep later calls from guessing which one is free, in one round trip.
func TestAPanicOfAnObserverLeavesNoTry(t *testing.T) {
	inBubble(t, func(f *fixture) {
		panics := false
		opts := sqllock.RegistryOptions{Observers: []*observe.Observer{{Acquire: func(ctx context.Context, _ observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
			return ctx, func(observe.AcquireEnd) {
				if panics {
					panic("as planned")
				}
			}
		}}}}
		db, network := f.Network()
		a := f.semaphore(f.registryOn(db, "a", opts), 1)
		network.Follow(func(_ context.Context, m flaky.Moment) error {
			if !m.Done {
				time.Sleep(time.Second)
			}
			return nil
		})
		takes := func() time.Duration {
			f.Unlock(f.acquires(a, 1))
			began := time.Now()
			f.Unlock(f.acquires(a, 1))
			return time.Since(began)
		}
		before := takes()
		panics = true
		func() {
			defer func() {
				if recover() == nil {
					f.Error("the panic does not go on")
				}
			}()
			_, _ = a.TryAcquire(f.Context(), 1)
		}()
		panics = false
		check.Equal(f.T, "the time for a permit", takes(), before)
		network.Follow(nil)
	})
}
