//go:build interop

package spring_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestJavaLosesToUs checks that Java's late renewal and unlock throw and do not affect sqllock's
// row.
func TestJavaLosesToUs(t *testing.T) {
	t.Parallel()
	migrated(t, drivers, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: short}).Thread("a")
		ours := c.lock(t, short)
		must(t, java.Lock(ctx, key))
		lease := check.Value(ours.Lock(ctx))(t)
		if err := java.Renew(ctx, key); !javaclient.Threw(err, "java.lang.IllegalStateException") {
			t.Errorf("renewLock: %v", err)
		}
		if err := java.Unlock(ctx, key); !javaclient.Threw(err, "java.util.ConcurrentModificationException") {
			t.Errorf("unlock: %v", err)
		}
		if row := c.row(t, short); row.Holder != lease.Holder() {
			t.Errorf("the row is %q's, want ours", row.Holder)
		}
		must(t, lease.Renew(ctx))
		must(t, lease.Unlock(ctx))
	})
}

// TestWeLoseToJava checks that sqllock's late renewal, guard and unlock return ErrLockLost and do not
// affect Java's row.
func TestWeLoseToJava(t *testing.T) {
	t.Parallel()
	migrated(t, drivers, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		client := c.java(t, javaclient.Settings{TTL: short, ClientID: "billing-java"})
		java := client.Thread("a")
		lease := check.Value(c.lock(t, short).Lock(ctx))(t)
		must(t, java.Lock(ctx, key))
		select {
		case <-lease.Context().Done():
		default:
			t.Error("Java holds the lock, but the context of the former holder has not ended")
		}
		check.Is(t, lease.Renew(ctx), sqllock.ErrLockLost)
		c.wantUnguarded(t, lease)
		check.Is(t, lease.Unlock(ctx), sqllock.ErrLockLost)
		if row := c.row(t, short); row.Holder != "billing-java" {
			t.Errorf("the row is %q's, want Java's", row.Holder)
		}
		check.Equal(t, "acquired", check.Value(client.Status(ctx, key))(t), true)
		must(t, java.Unlock(ctx, key))
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
		wantExpired(t, before)
		must(t, java.Unlock(ctx, key))
	})
}

// wantExpired checks that the other side's lock, acquired after an instant, has lasted for a short time-to-live.
func wantExpired(t *testing.T, before time.Time) {
	t.Helper()
	if waited := time.Since(before); waited < short {
		t.Errorf("acquired after %v, before %v had passed", waited, short)
	}
}
