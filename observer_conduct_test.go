package sqllock_test

// Observers that panic, take their time, or close the registry.

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/observe"
)

// TestAPanicOfAnObserverLeavesNoLock has each function of the caller's goroutine panic.
func TestAPanicOfAnObserverLeavesNoLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		failed := errors.New("failed")
		for name, o := range map[string]*observe.Observer{
			"Acquire": {Acquire: func(context.Context, observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) { panic(failed) }},
			"answer": {Acquire: func(ctx context.Context, _ observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
				return ctx, func(observe.AcquireEnd) { panic(failed) }
			}},
			"LeaseEnd": {LeaseEnd: func(context.Context, observe.LeaseEnd) { panic(failed) }},
		} {
			s, other, _ := observed(t, sqllock.RegistryOptions{Observers: []*observe.Observer{o}})
			func() {
				defer func() {
					if r := recover(); r != failed { //nolint:errorlint // the very one
						t.Errorf("%s: recovered %v", name, r)
					}
				}()
				lease, err := s.lock.TryLock(t.Context())
				must(t, err)
				must(t, lease.Unlock(t.Context()))
			}()
			if n := len(s.registry.Held()); n != 0 {
				t.Errorf("%s: %d locks are held", name, n)
			}
			must(t, held(other).Unlock(t.Context()))
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
				if e.Err == nil {
					b.acquired++
				}
			}
		},
		LeaseEnd: func(context.Context, observe.LeaseEnd) { b.ended++ },
	}
}

// TestTheOthersAreToldIfAnObserverPanics has a panic be recovered, as a web server does. The observers
// before and after the one that panics must not count waiters and leases for ever.
func TestTheOthersAreToldIfAnObserverPanics(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		for name, o := range map[string]*observe.Observer{
			"Acquire": {Acquire: func(context.Context, observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
				panic("on purpose")
			}},
			"answer": {Acquire: func(ctx context.Context, _ observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
				return ctx, func(observe.AcquireEnd) { panic("on purpose") }
			}},
			"LeaseEnd": {LeaseEnd: func(context.Context, observe.LeaseEnd) { panic("on purpose") }},
		} {
			var before, after balance
			s, _, _ := observed(t, sqllock.RegistryOptions{Observers: []*observe.Observer{before.observer(), o, after.observer()}})
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s: no panic", name)
					}
				}()
				lease, err := s.lock.Lock(t.Context())
				must(t, err)
				must(t, lease.Unlock(t.Context()))
			}()
			for _, b := range []balance{before, after} {
				if b.asked != b.answered || b.acquired != b.ended {
					t.Errorf("%s: %+v", name, b)
				}
			}
			if before.asked != 1 {
				t.Errorf("%s: %+v", name, before)
			}
		}
	})
}

// TestASlowObserverDelaysItsCallerAlone has LeaseEnd take a minute in Unlock.
func TestASlowObserverDelaysItsCallerAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, other, _ := observed(t, sqllock.RegistryOptions{Observers: []*observe.Observer{{
			LeaseEnd: func(context.Context, observe.LeaseEnd) { time.Sleep(time.Minute) },
		}}})
		lease := held(s)
		done := make(chan time.Time)
		began := time.Now()
		go func() {
			if err := lease.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
			done <- time.Now()
		}()
		synctest.Wait()
		must(t, held(other).Unlock(t.Context()))
		_, err := s.lock.TryLock(t.Context())
		must(t, err)
		if took := (<-done).Sub(began); took != time.Minute {
			t.Errorf("Unlock took %v", took)
		}
	})
}

// TestASlowObserverKeepsNoLeaseFromBeingRenewed has LeaseEnd take most of a time-to-live when a renewal
// finds one of many rows gone.
func TestASlowObserverKeepsNoLeaseFromBeingRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _, r := observed(t, sqllock.RegistryOptions{TTL: renewalTTL, AutoRenew: true, Observers: []*observe.Observer{{
			LeaseEnd: func(_ context.Context, e observe.LeaseEnd) {
				if e.Key == "gone" {
					time.Sleep(renewalTTL * 8 / 10)
				}
			},
		}}})
		for i := range 20 {
			_, err := s.registry.Lock(t.Context(), fmt.Sprint(i))
			must(t, err)
		}
		gone, err := s.registry.Lock(t.Context(), "gone")
		must(t, err)
		deleted, err := s.repository.Delete(t.Context(), "gone", gone.Holder())
		if must(t, err); !deleted {
			t.Fatal("the row is still there")
		}
		time.Sleep(3 * renewalTTL)
		synctest.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		for _, e := range r.ends {
			if e.Key != "gone" {
				t.Errorf("lost %+v", e)
			}
		}
		if n := len(s.registry.Held()); n != 20 || len(r.ends) != 1 {
			t.Errorf("%d locks are held, %d ends", n, len(r.ends))
		}
	})
}

// TestAnObserverOfALossMayCloseTheRegistry has LeaseEnd do so when a renewal finds the row gone.
func TestAnObserverOfALossMayCloseTheRegistry(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		closed := make(chan error, 1)
		var s *fixture
		var took time.Duration
		s, _, r := observed(t, sqllock.RegistryOptions{TTL: renewalTTL, AutoRenew: true, Observers: []*observe.Observer{{
			LeaseEnd: func(ctx context.Context, e observe.LeaseEnd) {
				if e.Reason.Lost() {
					began := time.Now()
					err := s.registry.Close(context.WithoutCancel(ctx))
					took = time.Since(began)
					closed <- err
				}
			},
		}}})
		lease := held(s)
		_, err := s.registry.Lock(t.Context(), "other")
		must(t, err)
		_, err = s.repository.Delete(t.Context(), "k", lease.Holder())
		must(t, err)
		if err := <-closed; err != nil || took > 0 {
			t.Errorf("Close took %v: %v", took, err)
		}
		synctest.Wait()
		r.mu.Lock()
		slices.Sort(r.texts) // the other lease ends within Close
		r.mu.Unlock()
		r.expect(t, "acquired", "acquired", "closed", "start", "start", "taken")
	})
}
