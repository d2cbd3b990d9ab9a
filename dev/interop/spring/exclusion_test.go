//go:build interop

package spring_test

import (
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// TestEachSeesTheOther tries to acquire a lock that the other side holds: of the key, and of several keys of
// which Java holds one.
func TestEachSeesTheOther(t *testing.T) {
	t.Parallel()
	migrated(t, drivers, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: long, ClientID: "billing-java"}).Thread("a")
		registry := c.registry(t, long)
		for _, keys := range [][]string{{key}, {"before", key, "zebra"}} {
			ours := check.Value(registry.ObtainAll(keys...))(t)

			must(t, java.Lock(ctx, key))
			_, err := ours.TryLock(ctx)
			var held *sqllock.HeldError
			if !errors.As(err, &held) || held.Holder != "billing-java" || held.Key != key {
				t.Errorf("of %q we see %v", keys, err)
			}
			must(t, java.Unlock(ctx, key))

			lease := check.Value(ours.TryLock(ctx))(t)
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
		lease := check.Value(c.lock(t, long).TryLock(ctx))(t)
		wantLock(t, elsewhere)
		must(t, elsewhere.Unlock(ctx, key))
		must(t, lease.Unlock(ctx))
	})
}

// TestTimesToLive checks how long the lock of one side excludes the other: for the holder's time-to-live if
// the row has EXPIRED_AFTER, and for that of the side that waits otherwise.
func TestTimesToLive(t *testing.T) {
	t.Parallel()
	for _, holder := range []string{"Java", "Go"} {
		t.Run(holder, func(t *testing.T) {
			t.Parallel()
			eachMigrated(t, func(t *testing.T, c *cell) {
				holders, waiters := short, long
				if c.layout == dialect.Spring6 {
					holders, waiters = long, short
				}
				springs, ours := holders, waiters
				if holder == "Go" {
					springs, ours = waiters, holders
				}
				ctx := patiently(t)
				thread, lock := c.java(t, javaclient.Settings{TTL: springs}).Thread("a"), c.lock(t, ours)
				hold, wait := func() error { return thread.Lock(ctx, key) }, func() error { return check.ErrorOf(lock.Lock(ctx)) }
				if holder == "Go" {
					hold, wait = wait, hold
				}
				before := time.Now()
				must(t, hold())
				after := time.Now()
				row := c.row(t, waiters)
				if total := row.Age + row.Left; (total - short).Abs() > 100*time.Millisecond {
					t.Errorf("the row lasts for %v, want %v", total, short)
				}
				must(t, wait())
				wantExpired(t, before)
				if waited := time.Since(after); waited > long/2 {
					t.Errorf("acquired only after %v: whose time-to-live was that?", waited)
				}
			})
		})
	}
}

// TestJavaAndReadersAndWriters has Java's lock of the key keep out writers and new readers. A writer
// keeps Java out; readers do not.
func TestJavaAndReadersAndWriters(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: long, ClientID: "billing-java"}).Thread("a")
		ours := check.Value(rwlock.New(c.registry(t, long), key))(t)

		reader := check.Value(ours.TryRLock(ctx))(t)
		must(t, java.Lock(ctx, key)) // it does not wait for the reader
		for name, try := range map[string]func() (*sqllock.Lease, error){
			"reader": func() (*sqllock.Lease, error) { return ours.TryRLock(ctx) },
			"writer": func() (*sqllock.Lease, error) { return ours.TryLock(ctx) },
		} {
			var held *sqllock.HeldError
			if _, err := try(); !errors.As(err, &held) || held.Holder == "" {
				t.Errorf("beside Java, a %s: %v", name, err)
			}
		}
		must(t, java.Unlock(ctx, key))
		must(t, reader.Unlock(ctx))

		writer := check.Value(ours.TryLock(ctx))(t)
		wantNoLock(t, java)
		must(t, writer.Unlock(ctx))
		wantLock(t, java)
		must(t, java.Unlock(ctx, key))
	})
}

func wantLock(t *testing.T, thread *javaclient.Thread) {
	t.Helper()
	locked := check.Value(thread.TryLock(patiently(t), key, 0))(t)
	if !locked {
		t.Fatal("Java does not get a lock that is free")
	}
}

func wantNoLock(t *testing.T, thread *javaclient.Thread) {
	t.Helper()
	locked := check.Value(thread.TryLock(patiently(t), key, 0))(t)
	if locked {
		t.Fatal("Java gets a lock that we hold")
	}
}
