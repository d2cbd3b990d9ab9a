//go:build interop

package spring_test

import (
	"cmp"
	"context"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestGuardHoldsSpringOff checks a guarded transaction whose lease has expired. It pins the row,
// so Spring acquires the lock only after its commit, and sees what it has written.
func TestGuardHoldsSpringOff(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		c.exec(t, "CREATE TABLE WORK (ID INT NOT NULL)")
		java := c.java(t, javaclient.Settings{TTL: short}).Thread("a")
		lease := check.Value(c.lock(t, short).Lock(ctx))(t)
		tx := c.begin(t)
		must(t, lease.Guard(ctx, tx))
		must(t, check.ErrorOf(tx.ExecContext(ctx, "INSERT INTO WORK (ID) VALUES (1)")))
		c.awaitExpiry(t)

		taken := check.Begin(func() error { return java.Lock(ctx, key) })
		c.awaitBlocked(t)
		select {
		case err := <-taken:
			t.Fatalf("Spring does not wait for the transaction: %v", err)
		default:
		}
		if n := c.written(t); n != 0 {
			t.Fatalf("%d rows are visible before the commit", n)
		}
		must(t, tx.Commit())
		must(t, <-taken)
		check.Equal(t, "Spring has the lock, and rows are visible", c.written(t), 1)
		check.Is(t, lease.Unlock(ctx), sqllock.ErrLockLost)
		must(t, java.Unlock(ctx, key))
	})
}

// TestGuardAfterSpringTookTheRow calls Guard after Spring has taken the row over. The lease has
// not expired by the holder's clock, so only the row shows the loss.
func TestGuardAfterSpringTookTheRow(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: long}).Thread("a")
		lease := check.Value(c.lock(t, long).Lock(ctx))(t)
		c.sqllock(t, "unlock", "--force", key)
		wantLock(t, java)
		must(t, context.Cause(lease.Context()))
		c.wantUnguarded(t, lease)
		must(t, java.Unlock(ctx, key))
	})
}

// TestALockWaitThatTimesOut has Java wait for a guarded transaction for longer than the server lets it. What Spring
// makes of that depends on the driver: of MariaDB's an exception, of MySQL's another attempt.
func TestALockWaitThatTimesOut(t *testing.T) {
	t.Parallel()
	migrated(t, append(ofMySQL, usual[1:]...), func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: long, Parameters: map[string]string{"sessionVariables": "innodb_lock_wait_timeout=1"}}).Thread("a")
		lease := check.Value(c.lock(t, long).Lock(ctx))(t)
		tx := c.begin(t)
		must(t, lease.Guard(ctx, tx))
		tried := check.Begin(func() error { return check.ErrorOf(java.TryLock(ctx, key, 0)) })
		if c.driver == javaclient.MariaDB {
			if err := <-tried; !javaclient.Threw(err, "CannotAcquireLockException") {
				t.Errorf("over MariaDB's driver: %v", err)
			}
			must(t, tx.Commit())
			return
		}
		c.awaitAnotherWait(t)
		must(t, tx.Commit())
		must(t, <-tried)
	})
}

// begin begins a transaction of the application. It is rolled back at the end of the test,
// unless the test has committed it.
func (c *cell) begin(t *testing.T) *sqlx.Tx {
	t.Helper()
	tx := check.Value(c.db.DB.BeginTxx(t.Context(), nil))(t)
	t.Cleanup(func() { _ = tx.Rollback() }) // does nothing after a commit
	return tx
}

// wantUnguarded checks that Guard returns ErrLockLost.
func (c *cell) wantUnguarded(t *testing.T, lease *sqllock.Lease) {
	t.Helper()
	tx := c.begin(t)
	check.Is(t, lease.Guard(t.Context(), tx), sqllock.ErrLockLost)
	must(t, tx.Rollback()) // MySQL has locked the row that Guard has read
}

// written returns the number of committed rows.
func (c *cell) written(t *testing.T) (n int) {
	t.Helper()
	must(t, c.db.DB.GetContext(t.Context(), &n, "SELECT COUNT(*) FROM WORK"))
	return n
}

// awaitExpiry waits until the row has expired.
func (c *cell) awaitExpiry(t *testing.T) {
	t.Helper()
	for row := c.row(t, short); !row.Expired(); row = c.row(t, short) {
		await(t, time.Now().Add(row.Left+time.Millisecond))
	}
}

// awaitBlocked waits until a session waits for a lock in this database.
func (c *cell) awaitBlocked(t *testing.T) {
	t.Helper()
	query := map[string]string{
		// Only the cell's own schema: other tests use other schemas.
		"postgres": `SELECT COUNT(*) FROM pg_locks l JOIN pg_locks r ON r.pid = l.pid
WHERE NOT l.granted AND r.relation = 'INT_LOCK'::regclass`,
		"mysql": `SELECT COUNT(*) FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
WHERE t.trx_state = 'LOCK WAIT' AND p.DB = DATABASE()`,
	}[c.db.Name]
	ctx := patiently(t)
	for n := 0; n == 0; {
		// InnoDB refreshes this table only if it was not read for a tenth of a second.
		// real time: between two polls
		await(t, time.Now().Add(150*time.Millisecond))
		must(t, c.db.DB.GetContext(ctx, &n, query))
	}
}

// awaitAnotherWait waits until a session on MySQL or MariaDB waits for a lock, and until another wait has begun.
func (c *cell) awaitAnotherWait(t *testing.T) {
	t.Helper()
	ctx := patiently(t)
	for first, now := "", ""; now == first; {
		// real time: between two polls
		await(t, time.Now().Add(150*time.Millisecond)) // see awaitBlocked
		must(t, c.db.DB.GetContext(ctx, &now, `SELECT COALESCE(MAX(CAST(t.trx_wait_started AS CHAR)), '')
FROM information_schema.INNODB_TRX t JOIN information_schema.PROCESSLIST p ON p.ID = t.trx_mysql_thread_id
WHERE t.trx_state = 'LOCK WAIT' AND p.DB = DATABASE()`))
		if first == "" || now == "" {
			first, now = cmp.Or(first, now), cmp.Or(first, now)
		}
	}
}
