//go:build interop

package spring_test

import (
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// TestAParkedRowIsFree has Java lock a key whose row sqllock has parked, because the key is busy, and sqllock go on afterwards.
func TestAParkedRowIsFree(t *testing.T) {
	t.Parallel()
	migrated(t, []choice{{postgres, []javaclient.Generation{javaclient.Spring70, javaclient.Spring7}}}, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		registry := check.Value(pgxlock.Open(dbtest.Unhurried(ctx), c.db.DSN, &pgxlock.Options{Registry: sqllock.RegistryOptions{TTL: long}}))(t)
		defer func() { must(t, registry.Close(ctx)) }()
		ours := check.Value(registry.Obtain(key))(t)
		java := c.java(t, javaclient.Settings{TTL: long}).Thread("a")
		for range 3 {
			for parked := false; !parked && !t.Failed(); {
				must(t, check.Value(ours.TryLock(ctx))(t).Unlock(ctx))
				must(t, c.db.DB.GetContext(ctx, &parked, "SELECT COUNT(*) = 1 FROM INT_LOCK WHERE CLIENT_ID LIKE '%-k%'"))
			}
			wantLock(t, java)
			if row := c.row(t, long); row.Expired() || row.Kept() {
				t.Errorf("Java holds the lock, and the row says %+v", row)
			}
			check.Is(t, check.ErrorOf(ours.TryLock(ctx)), sqllock.ErrNotAcquired)
			must(t, java.Unlock(ctx, key))
		}
	})
}
