//go:build interop

package spring_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
)

// TestWeTakeOverFromKilledJava checks that sqllock acquires the lock of a killed Java process
// after the time-to-live, and not before.
func TestWeTakeOverFromKilledJava(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		jvm := start(t, c.generation, nil)
		java := c.javaIn(t, jvm, javaclient.Settings{TTL: short}).Thread("a")
		before := time.Now()
		must(t, java.Lock(ctx, key))
		jvm.Kill()
		lease, err := c.lock(t, short).Lock(ctx)
		must(t, err)
		if waited := time.Since(before); waited < short {
			t.Errorf("taken over after %v, before %v had passed", waited, short)
		}
		must(t, lease.Unlock(ctx))
	})
}

// TestJavaTakesOverFromOurKilledProcess checks that Java acquires the lock of a killed Go
// process.
func TestJavaTakesOverFromOurKilledProcess(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: short}).Thread("a")
		before := time.Now()
		p := c.process(t, "hold", task{TTL: short})
		holder := p.Next()
		if row := c.row(t, short); row.Holder != holder {
			t.Fatalf("the row is %q's, want the process's, %q", row.Holder, holder)
		}
		p.Kill()
		must(t, java.Lock(ctx, key))
		if waited := time.Since(before); waited < short {
			t.Errorf("taken over after %v, before %v had passed", waited, short)
		}
		must(t, java.Unlock(ctx, key))
	})
}
