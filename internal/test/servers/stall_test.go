package servers_test

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

var stalledServers = map[string]watched{
	"mariadb": {start: server.StartMariaDB, driver: "mysql", dialect: dialect.MySQL()},
	"mysql":   {start: server.StartOracleMySQL, driver: "mysql", dialect: dialect.MySQL()},
}

// TestStall_ReadLock has a backup lock all tables for reading. The server answers reads, and keeps what writes until that is over: callers with
// a limit get an ErrDatabase, and the rows that it then writes for them go, although their leases would last for an hour. It takes
// seconds, since the callers have to give up.
func TestStall_ReadLock(t *testing.T) {
	t.Parallel()
	for name, w := range stalledServers {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, db := w.run(t)
			pool := check.Value(sqlx.Connect(w.driver, s.DSN()))(t)
			t.Cleanup(func() { must(t, pool.Close()) })
			r := newRegistry(t, check.Value(sqllock.NewRepository(t.Context(), pool.DB, w.dialect, nil))(t), &sqllock.RegistryOptions{TTL: time.Hour, DisableNames: true, NoRenew: true})
			backup := check.Value(db.Connx(t.Context()))(t)
			must(t, check.ErrorOf(backup.ExecContext(t.Context(), "FLUSH TABLES WITH READ LOCK")))
			for i := range 5 {
				err := check.ErrorOf(r.TryLockFor(t.Context(), fmt.Sprint("k", i), 300*time.Millisecond))
				is(t, err, sqllock.ErrDatabase)
				if errors.Is(err, sqllock.ErrNotAcquired) {
					t.Errorf("it looks taken: %v", err)
				}
			}
			must(t, check.ErrorOf(backup.ExecContext(t.Context(), "UNLOCK TABLES")))
			must(t, backup.Close())
			awaitThat(t, "the server has done what was sent, and its rows have gone", func() bool {
				var left int
				must(t, db.GetContext(t.Context(), &left, `SELECT (SELECT COUNT(*) FROM INT_LOCK)
					+ (SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE COMMAND IN ('Query', 'Execute') AND ID <> CONNECTION_ID())`))
				return left == 0
			})
		})
	}
}
