package registry_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

const (
	shelf       = "prices"
	shelfKey    = "afae32ef-e0f8-3fec-a3f9-6b377b768b33" // its LOCK_KEY, with which the keys of its rows begin
	aReader     = shelfKey + " reader 77"
	readersTurn = shelfKey + " reader turn"
	permitsTurn = shelfKey + " permit turn"
)

// A method is one that locks and takes no limit.
type method func(context.Context) (*sqllock.Lease, error)

func readWrite(s *fixture) *rwlock.Lock {
	s.Helper()
	return check.Value(rwlock.New(s.registry, shelf))(s.T)
}

func rlock(s *fixture) method { return readWrite(s).RLock }
func wlock(s *fixture) method { return readWrite(s).Lock }

func plain(s *fixture) method {
	return func(ctx context.Context) (*sqllock.Lease, error) { return s.registry.Lock(ctx, shelf) }
}

// permits acquires n of three permits.
func permits(n int) func(*fixture) method {
	return func(s *fixture) method {
		s.Helper()
		if s.three == nil {
			var err error
			s.three, err = semaphore.New(s.registry, shelf, 3)
			must(s.T, err)
		}
		return func(ctx context.Context) (*sqllock.Lease, error) { return s.three.Acquire(ctx, n) }
	}
}

// known is an action of a process that has just released a permit, and knows that it is free.
func known(a action) action {
	prepare := a.prepare
	a.name += "KnownToBeFree"
	a.prepare = func(s *fixture) *sqllock.Lease {
		s.Helper()
		must(s.T, check.Value(permits(1)(s)(s.Context()))(s.T).Unlock(s.Context()))
		return prepare(s)
	}
	return a
}

// taking is an action that calls a method while another client holds a row, if there is one, for as long
// as a waiter polls a few times. Afterwards the same process must get the whole lock.
func taking(name, row string, lock, whole func(*fixture) method) action {
	return action{name, func(s *fixture) *sqllock.Lease {
		s.Helper()
		s.whole = whole(s)
		if row != "" {
			must(s.T, check.ErrorOf(s.repository.Acquire(s.Context(), row, s.repository.NewHolder(), 50*time.Millisecond)))
		}
		return nil
	}, func(ctx context.Context, s *fixture, _ *sqllock.Lease) (*sqllock.Lease, error) { return lock(s)(ctx) }}
}

// inside is a method that is called inside a lease of another, which it returns.
func inside(outer, inner func(*fixture) method) func(*fixture) method {
	return func(s *fixture) method {
		return func(ctx context.Context) (*sqllock.Lease, error) {
			lease, err := outer(s)(ctx)
			if err != nil {
				return nil, err
			}
			defer unlockIfItPanics(ctx, lease)
			within, err := inner(s)(lease.Context()) //nolint:contextcheck // it is made from ctx
			if err != nil {
				return lease, err
			}
			_ = within.Unlock(ctx)
			return lease, nil
		}
	}
}

func downgrade(s *fixture) method {
	return func(ctx context.Context) (*sqllock.Lease, error) {
		lease, err := wlock(s)(ctx)
		if err != nil {
			return nil, err
		}
		defer unlockIfItPanics(ctx, lease)
		reader, err := readWrite(s).Downgrade(ctx, lease)
		if err != nil {
			return lease, err
		}
		return reader, nil
	}
}

// unlockIfItPanics is deferred by a method that has a lease.
func unlockIfItPanics(ctx context.Context, lease *sqllock.Lease) {
	if r := recover(); r != nil {
		_ = lease.Unlock(ctx)
		panic(r)
	}
}

// ofSeats are the actions of locks that are made of several rows, each of which is acquired by itself.
var ofSeats = []action{
	taking("RLock", "", rlock, wlock),
	taking("RLockBesideAWriter", shelf, rlock, wlock),
	taking("RLockBesideATurn", readersTurn, rlock, wlock),
	taking("RLockInsideRLock", "", inside(rlock, rlock), wlock),
	taking("RLockInsideLock", "", inside(wlock, rlock), wlock),
	taking("LockToWrite", "", wlock, wlock),
	taking("LockBesideAWriter", shelf, wlock, wlock),
	taking("LockBesideAReader", aReader, wlock, wlock),
	taking("LockBesideATurn", readersTurn, wlock, wlock),
	taking("LockInsideLock", "", inside(wlock, wlock), wlock),
	taking("LockInsideAPlainLock", aReader, inside(plain, wlock), wlock),
	taking("Downgrade", "", downgrade, wlock),
	taking("Acquire", "", permits(2), permits(3)),
	taking("AcquireBesideAHolder", shelfKey+" permit 1", permits(3), permits(3)),
	taking("AcquireBesideATurn", permitsTurn, permits(2), permits(3)),
	known(taking("Acquire", "", permits(1), permits(3))),
	known(taking("AcquireBesideATurn", permitsTurn, permits(1), permits(3))),
}

// aPlainLock is what the panic of an observer is tried with beside ofSeats.
var aPlainLock = action{"PlainLock", free, func(ctx context.Context, s *fixture, _ *sqllock.Lease) (*sqllock.Lease, error) {
	return s.lock.TryLock(ctx)
}}

// TestAnObserverThatPanics has an observer panic at each event of an action, and the panic be recovered, as a
// web server does. The caller does not get a lease then, so none may be left. The observers before and after
// the one that panics do not count waiters and leases for ever.
func TestAnObserverThatPanics(t *testing.T) {
	t.Parallel()
	for _, a := range append([]action{aPlainLock}, ofSeats...) {
		runInBubble(t, a.name, func(t *testing.T) {
			var before, after balance
			var left atomic.Int64 // until the event at which it panics
			event := func() {
				if left.Add(-1) == 0 {
					panic(errGone)
				}
			}
			s := newFixture(t, sqllock.Serializable)
			s.registry = newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: ttl, Observers: []*observe.Observer{before.observer(), {
				Acquire: func(ctx context.Context, _ observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
					event()
					return ctx, func(observe.AcquireEnd) { event() }
				},
				LeaseEnd: func(context.Context, observe.LeaseEnd) { event() },
			}, after.observer()}, NoRenew: true})
			s.lock = obtain(t, s.registry, "k")
			for n, panicked := int64(1), true; panicked; n++ {
				a.prepare(s)
				left.Store(n)
				panicked = s.panics(func() {
					must(s.T, check.Value(a.do(s.Context(), s, nil))(s.T).Unlock(s.Context()))
				})
				left.Store(0)
				s.settle(nil, fmt.Errorf("a panic at event %d", n))
				for _, b := range []balance{before, after} {
					if b.asked != b.answered || b.acquired != b.ended || before.asked == 0 {
						t.Errorf("%+v, after a panic at event %d", b, n)
					}
				}
			}
		})
	}
}

// A caller that asks the context of a lease whose time is up may have a mutex, as database/sql does: it does not wait for an
// observer.
func TestAnObserverOfTheEndDoesNotKeepTheContext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		for range 50 { // the timer of the lease may be faster
			asked := make(chan struct{})
			registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Second, NoRenew: true, Observers: []*observe.Observer{{
				LeaseEnd: func(context.Context, observe.LeaseEnd) { <-asked },
			}}})
			lease := tryKey(t, registry, "k")
			time.Sleep(time.Until(lease.Deadline()))
			is(t, lease.Context().Err(), context.Canceled)
			close(asked)
			synctest.Wait()
			must(t, s.repository.ReleaseAll(t.Context()))
		}
	})
}

// A balance counts what an observer was told.
type balance struct{ asked, answered, acquired, ended int }

func (b *balance) observer() *observe.Observer {
	return &observe.Observer{
		Acquire: func(ctx context.Context, _ observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
			b.asked++
			return ctx, func(e observe.AcquireEnd) {
				b.answered++
				if e.Err == nil && !e.Reentered { // that ends with the outer lease
					b.acquired++
				}
			}
		},
		LeaseEnd: func(context.Context, observe.LeaseEnd) { b.ended++ },
	}
}

// panics reports whether fn panics with errGone.
func (s *fixture) panics(fn func()) (panicked bool) {
	s.Helper()
	defer func() {
		if r := recover(); r != nil {
			if r != errGone { //nolint:errorlint // the very value
				panic(r)
			}
			panicked = true
		}
	}()
	fn()
	return false
}
