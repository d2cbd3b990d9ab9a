//go:build interop

package spring_test

import (
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestSpring6OnFiveColumns tries a Spring before 7 on the table of Spring 7. On PostgreSQL each attempt looks as if
// the lock were held, so lock() waits for ever; MySQL and MariaDB answer with an error that Spring throws.
func TestSpring6OnFiveColumns(t *testing.T) {
	t.Parallel()
	spring6 := []javaclient.Generation{javaclient.Spring6}
	eachCell(t, []choice{{postgres, spring6}, {mariadb, spring6}, {connectorJ, spring6}, {mysqlPlace, spring6}}, func(t *testing.T, c *cell) {
		c.layout = dialect.Spring7
		c.migrate(t)
		locked, err := c.java(t, javaclient.Settings{TTL: long}).Thread("a").TryLock(patiently(t), key, 0)
		if c.db.Name == "postgres" {
			must(t, err)
			check.Equal(t, "locked", locked, false)
		} else if !javaclient.Threw(err, "CannotAcquireLockException") || !strings.Contains(err.Error(), "EXPIRED_AFTER") {
			t.Errorf("%v, %v", locked, err)
		}
	})
}

// TestAnUpdateQueryOfSpring6 gives Spring 7 a customised query that was written for Spring
// 6: it takes over live rows.
func TestAnUpdateQueryOfSpring6(t *testing.T) {
	t.Parallel()
	const query = "UPDATE INT_LOCK SET CLIENT_ID=?, CREATED_DATE=? WHERE REGION=? AND LOCK_KEY=? AND (CLIENT_ID=? OR CREATED_DATE<?)"
	migrated(t, versions[:1], func(t *testing.T, c *cell) {
		java := c.java(t, javaclient.Settings{TTL: long, UpdateQuery: query}).Thread("a")
		must(t, check.ErrorOf(c.lock(t, long).TryLock(t.Context())))
		if c.layout == dialect.Spring6 {
			wantNoLock(t, java)
		} else {
			wantLock(t, java)
		}
	})
}
