//go:build interop

package spring_test

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
)

// TestSpringsCheckAtTheStart checks that Spring's application context fails to start without the
// table, and starts with the table of package migrations.
func TestSpringsCheckAtTheStart(t *testing.T) {
	t.Parallel()
	eachCell(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		_, err := shared(t, c.generation).Open(ctx, javaclient.Settings{DSN: c.db.DSN})
		if err == nil || !strings.Contains(strings.ToUpper(err.Error()), "INT_LOCK") {
			t.Fatalf("without a table: %v", err)
		}
		c.migrate(t)
		java := c.java(t, javaclient.Settings{}).Thread("a")
		wantLock(t, java)
		must(t, java.Unlock(ctx, key))
	})
}
