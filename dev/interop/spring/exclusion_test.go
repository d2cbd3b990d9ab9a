//go:build interop

package spring_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/dialect"
)

// TestEachSeesTheOther tries to acquire a lock that the other side holds: of the key, and of several keys of
// which Java holds one.
func TestEachSeesTheOther(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: long, ClientID: "billing-java"}).Thread("a")
		registry := c.registry(t, long)
		for _, keys := range [][]string{{key}, {"before", key, "zebra"}} {
			ours, err := registry.ObtainAll(keys...)
			must(t, err)

			must(t, java.Lock(ctx, key))
			_, err = ours.TryLock(ctx)
			var held *sqllock.HeldError
			if !errors.As(err, &held) || held.Holder != "billing-java" || held.Key != key {
				t.Errorf("of %q we see %v", keys, err)
			}
			must(t, java.Unlock(ctx, key))

			lease, err := ours.TryLock(ctx)
			must(t, err)
			wantNoLock(t, java)
			must(t, lease.Unlock(ctx))
			wantLock(t, java)
			must(t, java.Unlock(ctx, key))
		}
	})
}

// TestRegionsAreIndependent checks that both sides can hold the same key in different regions.
func TestRegionsAreIndependent(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		elsewhere := c.java(t, javaclient.Settings{TTL: long, Region: "elsewhere"}).Thread("a")
		lease, err := c.lock(t, long).TryLock(ctx)
		must(t, err)
		wantLock(t, elsewhere)
		must(t, elsewhere.Unlock(ctx, key))
		must(t, lease.Unlock(ctx))
	})
}

// TestSpringsTimeToLive checks how long Spring's lock excludes sqllock: for Spring's
// time-to-live if the row has EXPIRED_AFTER, and for sqllock's otherwise.
func TestSpringsTimeToLive(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		springs, ours := short, long
		if c.layout == dialect.Spring6 {
			springs, ours = long, short
		}
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: springs}).Thread("a")
		lock := c.lock(t, ours)
		before := time.Now()
		must(t, java.Lock(ctx, key))
		after := time.Now()
		row := c.row(t, ours)
		if total := row.Age + row.Left; (total - short).Abs() > 100*time.Millisecond {
			t.Errorf("the row lasts for %v, want %v", total, short)
		}
		lease, err := lock.Lock(ctx)
		must(t, err)
		if waited := time.Since(before); waited < short {
			t.Errorf("we had the lock after %v, before %v had passed", waited, short)
		}
		if waited := time.Since(after); waited > long/2 {
			t.Errorf("we had the lock only after %v: whose time-to-live was that?", waited)
		}
		must(t, lease.Unlock(ctx))
	})
}

// TestOurTimeToLive checks how long sqllock's lock excludes Spring.
func TestOurTimeToLive(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		springs, ours := long, short
		if c.layout == dialect.Spring6 {
			springs, ours = short, long
		}
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: springs}).Thread("a")
		lock := c.lock(t, ours)
		before := time.Now()
		_, err := lock.Lock(ctx)
		must(t, err)
		after := time.Now()
		must(t, java.Lock(ctx, key))
		if waited := time.Since(before); waited < short {
			t.Errorf("Java had the lock after %v, before %v had passed", waited, short)
		}
		if waited := time.Since(after); waited > long/2 {
			t.Errorf("Java had the lock only after %v: whose time-to-live was that?", waited)
		}
		must(t, java.Unlock(ctx, key))
	})
}

func wantLock(t *testing.T, thread *javaclient.Thread) {
	t.Helper()
	locked, err := thread.TryLock(patiently(t), key, 0)
	must(t, err)
	if !locked {
		t.Fatal("Java does not get a lock that is free")
	}
}

func wantNoLock(t *testing.T, thread *javaclient.Thread) {
	t.Helper()
	locked, err := thread.TryLock(patiently(t), key, 0)
	must(t, err)
	if locked {
		t.Fatal("Java gets a lock that we hold")
	}
}
