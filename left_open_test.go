package sqllock_test

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// The application has left a transaction open on a connection of the pool that it shares with sqllock.
// What is acquired or renewed in there would be undone with it.
func TestATransactionThatTheApplicationHasLeftOpen(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		open   func(testing.TB) *dbtest.DB
		driver string
	}{
		"MariaDB": {dbtest.MySQL, "mysql"}, "MySQL": {dbtest.OracleMySQL, "mysql"},
		"PostgreSQL, lib/pq": {dbtest.Postgres, "postgres"}, "PostgreSQL, pgx": {dbtest.Postgres, "pgx"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := c.open(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			shared := db.OpenDSN(t, c.driver, db.DSN)
			shared.SetMaxOpenConns(1)
			leaveOpen := func() {
				t.Helper()
				_, err := shared.ExecContext(t.Context(), "BEGIN")
				must(t, err)
			}
			r, err := sqllock.NewRepository(t.Context(), shared.DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit})
			must(t, err)
			outside, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, nil)
			must(t, err)
			lastsFor := func(least time.Duration) {
				t.Helper()
				row, found, err := outside.Peek(t.Context(), "k")
				must(t, err)
				if !found || row.Left < least {
					t.Errorf("%v left, found %v", row.Left, found)
				}
			}
			leaveOpen()
			lease, err := newRegistry(t, r, &sqllock.RegistryOptions{TTL: ttl}).TryLock(t.Context(), "k")
			must(t, err)
			lastsFor(ttl / 2)
			leaveOpen()
			must(t, lease.RenewFor(t.Context(), 10*ttl))
			lastsFor(2 * ttl)
			leaveOpen()
			outcome, err := r.Renew(t.Context(), "k", lease.Holder(), 20*ttl)
			if must(t, err); !outcome {
				t.Error("not renewed")
			}
			lastsFor(11 * ttl)
			must(t, lease.Unlock(t.Context()))
		})
	}
}
