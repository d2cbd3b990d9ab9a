package sqllock_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// `defer lease.Unlock(ctx)` before the error is looked at is a common slip.
func TestANilLeaseHoldsNothing(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	registry := newRegistry(t, newRepository(t, db.DB, nil), nil)
	holder, err := obtain(t, registry, "k").TryLock(t.Context())
	must(t, err)
	failed, err := obtain(t, registry, "k").TryLock(t.Context())
	if failed != nil || !errors.Is(err, sqllock.ErrNotAcquired) {
		t.Fatal(failed, err)
	}
	for name, lease := range map[string]*sqllock.Lease{"Failed": failed, "Nil": nil, "Zero": new(sqllock.Lease)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for method, call := range map[string]func() error{
				"Unlock":   func() error { return lease.Unlock(t.Context()) },
				"again":    func() error { return lease.Unlock(t.Context()) },
				"Renew":    func() error { return lease.Renew(t.Context()) },
				"RenewFor": func() error { return lease.RenewFor(t.Context(), time.Second) },
				"Guard":    func() error { return lease.Guard(t.Context(), nil) },
				"GuardFunc": func() error {
					return sqllock.GuardFunc[*sql.Row](t.Context(), lease, nil)
				},
			} {
				if err := call(); !errors.Is(err, sqllock.ErrNotHeld) || !strings.Contains(err.Error(), "lease is nil") {
					t.Errorf("%s: %v", method, err)
				}
			}
			if lease.Key() != "" || lease.Holder() != "" || lease.Token() != 0 || !lease.Deadline().IsZero() {
				t.Error(lease.Key(), lease.Holder(), lease.Token(), lease.Deadline())
			}
			if ctx := lease.Context(); ctx.Err() == nil || !errors.Is(context.Cause(ctx), sqllock.ErrNotHeld) {
				t.Error(context.Cause(ctx))
			}
		})
	}
	must(t, holder.Unlock(t.Context()))
}

// leftOf returns how long the holder has, as a failed try says.
func leftOf(t *testing.T, lock *sqllock.JdbcLock) time.Duration {
	t.Helper()
	_, err := lock.TryLock(t.Context())
	var held *sqllock.HeldError
	if !errors.As(err, &held) {
		t.Fatal(err)
	}
	return held.Left
}

// A try in the holder's process says how long the row lasts, not the lease, which
// ends earlier.
func TestTheTimeLeftOfALocalHolderIsItsRows(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, _ := renewing(t, sqllock.RegistryOptions{MaxHold: 2 * renewalTTL})
		lease := held(s)
		if left := leftOf(t, s.lock); left != renewalTTL {
			t.Errorf("%v left at the beginning", left)
		}
		time.Sleep(5 * time.Second)
		if left := leftOf(t, s.lock); left != renewalTTL-5*time.Second {
			t.Errorf("%v left after 5 s", left)
		}
		must(t, lease.Renew(t.Context()))
		if left := leftOf(t, s.lock); left != renewalTTL {
			t.Errorf("%v left after a renewal", left)
		}
		must(t, lease.RenewFor(t.Context(), 10*time.Second))
		if left := leftOf(t, s.lock); left != renewalTTL {
			t.Errorf("%v left after a renewal for less", left)
		}
		must(t, lease.RenewFor(t.Context(), 5*renewalTTL))
		if left := leftOf(t, s.lock); left != 5*renewalTTL {
			t.Errorf("%v left after a renewal for more", left)
		}
		must(t, lease.Unlock(t.Context()))
	})
}

// Heartbeats go on after a renewal for longer, and take nothing back.
func TestAutoRenewShortensNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{MaxHold: 2 * renewalTTL})
		lease := held(s)
		must(t, lease.RenewFor(t.Context(), 10*renewalTTL))
		end := lease.Deadline()
		if left := time.Until(end); left != 10*renewalTTL-500*time.Millisecond {
			t.Errorf("%v left", left)
		}
		time.Sleep(renewalTTL + time.Second)
		if p.good.Load() != 0 { // it lasts beyond what AutoRenew may give
			t.Errorf("%d renewals", p.good.Load())
		}
		time.Sleep(8 * renewalTTL)
		must(t, lease.Context().Err())
		if !lease.Deadline().Equal(end) {
			t.Errorf("the deadline was moved by %v", lease.Deadline().Sub(end))
		}
		<-lease.Context().Done()
		if !errors.Is(lease.Unlock(t.Context()), sqllock.ErrLockLost) || time.Since(end) != 0 {
			t.Error(time.Since(end))
		}
	})
}

// A heartbeat that was sent before a renewal for longer, and arrives after it, leaves
// the row as it is.
func TestALateHeartbeatShortensNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, p := renewing(t, sqllock.RegistryOptions{})
		lease := held(s)
		late := holdBack(s, flaky.Query)
		<-late.reached
		must(t, lease.RenewFor(t.Context(), 10*renewalTTL))
		close(late.let)
		time.Sleep(renewalTTL)
		row, ok, err := s.repository.Peek(t.Context(), "k")
		if err != nil || !ok || row.Left < 9*renewalTTL || p.good.Load() == 0 {
			t.Errorf("%+v, %v, %v; %d renewals", row, ok, err, p.good.Load())
		}
		time.Sleep(time.Until(lease.Deadline()) - time.Second)
		must(t, lease.Context().Err())
		must(t, lease.Unlock(t.Context()))
	})
}

// If the answer to a renewal for longer is lost, the row may last long after the lease.
// It does not keep this process out.
func TestARenewalForLongerWithoutAnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		s.lock = obtain(t, newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: renewalTTL}), "k")
		lease := held(s)
		end := lease.Deadline()
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Done {
				return errGone
			}
			return nil
		})
		if err := lease.RenewFor(t.Context(), 10*renewalTTL); !errors.Is(err, sqllock.ErrDatabase) {
			t.Fatal(err)
		}
		s.connector.Follow(nil)
		<-lease.Context().Done()
		synctest.Wait() // the row is noted after the context has ended
		if !errors.Is(context.Cause(lease.Context()), sqllock.ErrLockLost) || time.Since(end) != 0 {
			t.Error(context.Cause(lease.Context()), time.Since(end))
		}
		row, ok, err := s.repository.Peek(t.Context(), "k")
		if err != nil || !ok || row.Left < 9*renewalTTL {
			t.Fatalf("%+v, %v, %v", row, ok, err)
		}
		must(t, held(s).Unlock(t.Context()))
	})
}

func TestAutoRenewOfOneLock(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		const most = 5 * renewalTTL
		s, p := renewing(t, sqllock.RegistryOptions{})
		off, err := s.lock.WithAutoRenew(false).Lock(t.Context())
		must(t, err)
		end := off.Deadline()
		<-off.Context().Done()
		if p.good.Load() != 0 || time.Since(end) != 0 {
			t.Errorf("%d renewals", p.good.Load())
		}
		if err := off.Unlock(t.Context()); !errors.Is(err, sqllock.ErrLockLost) {
			t.Error(err)
		}

		p = new(renewalCount)
		registry := newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: renewalTTL, MaxHold: most, Observers: onRenewals(p.count)})
		lock := obtain(t, registry, "other")
		plain, err := obtain(t, registry, "plain").Lock(t.Context())
		must(t, err)
		// In whatever order: one does not undo the other.
		for _, l := range []*sqllock.JdbcLock{lock.WithAutoRenew(true).WithTTL(renewalTTL / 2), lock.WithTTL(renewalTTL / 2).WithAutoRenew(true)} {
			*p = renewalCount{}
			on, err := l.Lock(t.Context())
			must(t, err)
			time.Sleep(most - time.Second)
			must(t, on.Context().Err())
			if p.leases.Load() != 1 || p.good.Load() < 20 {
				t.Errorf("%d renewals of %d leases", p.good.Load(), p.leases.Load())
			}
			inner, err := lock.WithAutoRenew(false).Lock(on.Context()) // it keeps what it has
			must(t, err)
			must(t, inner.Unlock(t.Context()))
			must(t, on.Unlock(t.Context()))
		}
		if err := plain.Unlock(t.Context()); !errors.Is(err, sqllock.ErrLockLost) {
			t.Error(err)
		}
	})
}

// A withoutLease context does not carry the lease that it is made from.
type withoutLease struct{ context.Context }

func (c withoutLease) Value(key any) any {
	if fmt.Sprintf("%T", key) == "sqllock.leaseKey" {
		return nil
	}
	return c.Context.Value(key)
}

// A row that is handed over to a waiter whose context has ended just now is released. Its
// minimum hold does not count, because the waiter never held the lock.
func TestAWaiterThatGaveUpHasNoMinimumHold(t *testing.T) {
	t.Parallel()
	registry := newRegistry(t, newRepository(t, migrated(t).DB, nil), &sqllock.RegistryOptions{
		TTL: ttl, IdleBetweenTries: never, HandOff: true,
	})
	lock := obtain(t, registry, "k")
	first, err := lock.Lock(t.Context())
	must(t, err)
	waiting := make(chan error, 1)
	go func() {
		_, err := lock.WithMinHold(ttl).Lock(withoutLease{first.Context()}) // it ends when the row is handed over
		waiting <- err
	}()
	for registry.Held()[0].Waiting == 0 {
		runtime.Gosched()
	}
	must(t, first.Unlock(t.Context()))
	if err := <-waiting; !errors.Is(err, sqllock.ErrNotAcquired) || !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	next, err := lock.TryLock(t.Context())
	must(t, err)
	if next.Holder() == first.Holder() {
		t.Error("the row was not released")
	}
	must(t, next.Unlock(t.Context()))
}

// LeaseFrom says whether the caller is under the lock, without a round trip.
func TestLeaseFromSendsNothing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: renewalTTL})
		s.lock = obtain(t, registry, "k")
		lease := held(s)
		s.connector.Follow(nil) // count from here
		ctx := context.WithoutCancel(lease.Context())
		got, err := registry.LeaseFrom(ctx, "k")
		if got != lease || err != nil {
			t.Error(got, err)
		}
		for range 2 {
			if got, err := registry.LeaseFrom(t.Context(), "k"); got != nil || !errors.Is(err, sqllock.ErrNotHeld) {
				t.Error(got, err)
			}
			<-lease.Context().Done()
			if got, err := registry.LeaseFrom(ctx, "k"); got != nil || !errors.Is(err, sqllock.ErrLockLost) {
				t.Error(got, err)
			}
		}
		if n := s.connector.Count(); n != 0 {
			t.Errorf("%d statements", n)
		}
	})
}
