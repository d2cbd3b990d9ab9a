//go:build interop

package spring_test

import (
	"strings"
	"testing"
	"time"

	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestADriverWithoutFractions has Java lock in the middle of a second, over a driver that writes whole seconds:
// MySQL's does so on a MariaDB that greets its clients as 5.5.5, as those before 11 do, and elsewhere if it is
// asked to. Nevertheless sqllock keeps off for the time-to-live.
func TestADriverWithoutFractions(t *testing.T) {
	t.Parallel()
	migrated(t, ofMySQL, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		settings := javaclient.Settings{TTL: short}
		if !strings.HasPrefix(c.db.Version(t), "10.") {
			settings.Parameters = map[string]string{"sendFractionalSeconds": "false"}
		}
		java := c.java(t, settings).Thread("a")
		ours := c.lock(t, short)
		must(t, java.Lock(ctx, key)) // the first one takes longer
		must(t, java.Unlock(ctx, key))
		await(t, time.Now().Truncate(time.Second).Add(1500*time.Millisecond))
		before := time.Now()
		must(t, java.Lock(ctx, key))
		column := map[dialect.Layout]string{dialect.Spring6: "CREATED_DATE", dialect.Spring7: "EXPIRED_AFTER"}[c.layout]
		var fraction int
		must(t, c.db.DB.GetContext(ctx, &fraction, "SELECT MICROSECOND("+column+") FROM INT_LOCK"))
		if fraction != 0 {
			t.Errorf("the driver has sent %d µs: does it send fractions now?", fraction)
		}
		lease := check.Value(ours.Lock(ctx))(t)
		wantExpired(t, before)
		must(t, lease.Unlock(ctx))
	})
}
