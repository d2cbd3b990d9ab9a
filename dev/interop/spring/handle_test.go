//go:build interop

package spring_test

import (
	"strconv"
	"testing"

	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestAHandleThatWasEvicted shows why Java must obtain handles afresh. Spring refuses one that was
// evicted from its cache only while none is cached for the key, and 6.5 never does. It has a local lock
// of its own, so two threads hold one key.
func TestAHandleThatWasEvicted(t *testing.T) {
	t.Parallel()
	migrated(t, versions, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		client := c.java(t, javaclient.Settings{TTL: long, Capacity: 1})
		one, two := client.Thread("one"), client.Thread("two")
		check.Equal(t, "locked", check.Value(one.TryLockKept(ctx, key))(t), true)
		must(t, one.Unlock(ctx, key))
		must(t, one.Lock(ctx, "another"))
		must(t, one.Unlock(ctx, "another"))
		locked, err := one.TryLockKept(ctx, key)
		if c.generation == javaclient.Spring6 {
			must(t, err)
			check.Equal(t, "locked", locked, true)
		} else if !javaclient.Threw(err, "CannotAcquireLockException") {
			t.Errorf("an evicted handle: %v, %v", locked, err)
		}
		must(t, two.Lock(ctx, key))
		check.Equal(t, "locked by two threads", check.Value(one.TryLockKept(ctx, key))(t), true)
		must(t, two.Unlock(ctx, key))
	})
}

// TestSpellingsOfAUUIDInOneJVM shows why a key in UUID form must have one spelling in Java: from 7.0.7 on, Spring's
// local lock is that of the key as it is written, and the row is one.
func TestSpellingsOfAUUIDInOneJVM(t *testing.T) {
	t.Parallel()
	const upper, lower = "D5642A7A-3FF9-3C02-839E-0A4EE8B8F024", "d5642a7a-3ff9-3c02-839e-0a4ee8b8f024"
	migrated(t, versions, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		client := c.java(t, javaclient.Settings{TTL: long})
		must(t, client.Thread("one").Lock(ctx, upper))
		locked := check.Value(client.Thread("two").TryLock(ctx, lower, 0))(t)
		check.Equal(t, "locked by two threads", locked, c.generation != javaclient.Spring6)
		elsewhere := c.java(t, javaclient.Settings{TTL: long})
		check.Equal(t, "locked by two processes", check.Value(elsewhere.Thread("one").TryLock(ctx, lower, 0))(t), false)
		_, err := check.Value(c.registry(t, long).Obtain(lower))(t).TryLock(ctx)
		wantHeld(t, err)
	})
}

// TestManyKeysOfOneThread has one thread of Java hold many keys. In 7.0.5, unlocking leaves
// some of the rows (GH-11146).
func TestManyKeysOfOneThread(t *testing.T) {
	t.Parallel()
	const keys = 50
	migrated(t, versions, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: long}).Thread("a")
		for i := range keys {
			must(t, java.Lock(ctx, strconv.Itoa(i)))
		}
		for i := range keys {
			must(t, java.Unlock(ctx, strconv.Itoa(i)))
		}
		var rows int
		must(t, c.db.DB.GetContext(ctx, &rows, "SELECT COUNT(*) FROM INT_LOCK"))
		check.Equal(t, "rows that are left", rows, 0)
	})
}
