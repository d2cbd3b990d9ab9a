package registry_test

import (
	"context"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/listing"
	"github.com/sqllock/sqllock/internal/test/check"
	shared "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// TestOverdue_IsNoneOfThoseThatAreRenewed has leases of two times-to-live, and one that is not renewed.
func TestOverdue_IsNoneOfThoseThatAreRenewed(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		reader := newRepository(t, s.db.DB, nil)
		shown := func() map[string]listing.Lock {
			locks := listing.Named(check.Value(reader.List(t.Context()))(t), nil)
			listing.ReadTTLs(t.Context(), reader, locks)
			byKey := make(map[string]listing.Lock)
			for _, l := range locks {
				byKey[l.Key] = l
			}
			return byKey
		}
		expect := func(when, key string, ttl, ago time.Duration, overdue bool) {
			t.Helper()
			l := shown()[key]
			renewed, known := l.Renewed()
			if l.TTL != ttl || known != (ttl != 0) || renewed < ago || renewed > ago+4*time.Second || l.Overdue() != overdue {
				t.Errorf("%s: %s: time-to-live %v, renewed %v ago (%v), overdue %v; want %v, %v, %v", when, key, l.TTL, renewed, known, l.Overdue(), ttl, ago, overdue)
			}
		}
		r := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: 10 * time.Second})
		lease := check.Value(obtain(t, r, "busy").WithAutoRenew(true).TryLock(t.Context()))(t)
		time.Sleep(time.Minute)
		expect("of one kind", "busy", 10*time.Second, 0, false)
		long := check.Value(obtain(t, r, "long").WithTTL(5 * time.Minute).WithAutoRenew(true).TryLock(t.Context()))(t)
		time.Sleep(4 * time.Second)
		expect("of two", "long", 5*time.Minute, 4*time.Second, false)
		expect("of two", "busy", 10*time.Second, 0, false)
		plain := check.Value(obtain(t, r, "plain").WithTTL(20 * time.Second).WithAutoRenew(false).TryLock(t.Context()))(t)
		time.Sleep(11 * time.Second)
		expect("without renewal", "plain", 0, 0, false)
		must(t, plain.Unlock(t.Context()))
		must(t, lease.Unlock(t.Context()))
		must(t, long.Unlock(t.Context()))
	})
}

// TestOverdue_WhileTheHolderIsStopped has the row of a holder that no longer renews it.
func TestOverdue_WhileTheHolderIsStopped(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		reader := newRepository(t, s.db.DB, nil)
		r := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: 30 * time.Second})
		lease := check.Value(obtain(t, r, "k").WithAutoRenew(true).TryLock(t.Context()))(t)
		time.Sleep(time.Minute)
		s.connector.Follow(func(context.Context, flaky.Moment) error { return errGone })
		for n, want := range []bool{false, true} {
			time.Sleep(time.Duration(1+17*n) * time.Second) // a renewal is due after 10 s
			locks := listing.Named(check.Value(reader.List(t.Context()))(t), nil)
			listing.ReadTTLs(t.Context(), reader, locks)
			if len(locks) != 1 || locks[0].TTL != 30*time.Second || locks[0].Overdue() != want {
				t.Errorf("overdue %v, want %v: %+v", locks[0].Overdue(), want, locks)
			}
		}
		s.connector.Follow(nil)
		must(t, lease.Unlock(t.Context()))
	})
}

// TestOverdue_IsNoneThatMaxHoldEnds has a lease that is renewed until MaxHold is over, and then lasts for a while.
func TestOverdue_IsNoneThatMaxHoldEnds(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		reader := newRepository(t, s.db.DB, nil)
		r := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Minute, MaxHold: 100 * time.Second})
		lease := check.Value(obtain(t, r, "k").TryLock(t.Context()))(t)
		for range 19 {
			time.Sleep(5 * time.Second)
			locks := listing.Named(check.Value(reader.List(t.Context()))(t), nil)
			listing.ReadTTLs(t.Context(), reader, locks)
			if len(locks) != 1 || locks[0].Overdue() {
				t.Errorf("%+v", locks)
			}
		}
		must(t, lease.Unlock(t.Context()))
	})
}

// TestOverdue_IsNoneThatRenewForExtends has a lease that lasts for longer than its time-to-live, beside one that always does.
func TestOverdue_IsNoneThatRenewForExtends(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		reader := newRepository(t, s.db.DB, nil)
		r := shared.NewRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: 10 * time.Second})
		lease := check.Value(obtain(t, r, "k").TryLock(t.Context()))(t)
		long := check.Value(obtain(t, r, "long").WithTTL(time.Minute).TryLock(t.Context()))(t)
		time.Sleep(90300 * time.Millisecond)
		must(t, lease.RenewFor(t.Context(), time.Minute))
		for range 13 {
			time.Sleep(5 * time.Second)
			locks := listing.Named(check.Value(reader.List(t.Context()))(t), nil)
			listing.ReadTTLs(t.Context(), reader, locks)
			for _, l := range locks {
				if l.Overdue() {
					t.Errorf("%+v", l)
				}
			}
		}
		must(t, lease.Unlock(t.Context()))
		must(t, long.Unlock(t.Context()))
	})
}
