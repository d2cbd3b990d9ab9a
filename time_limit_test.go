package sqllock_test

import (
	"errors"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// An administrator may allow statements less time than they wait for a row. What ends then is a wait, and no error
// of the database.
func TestTimeLimitsOfTheServer(t *testing.T) {
	t.Parallel()
	const postgres, mariaDB = "SET statement_timeout = ", "SET max_statement_time = "
	for name, test := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		driver   string
		set      string // sets the limit
		limit    string
	}{
		"pgx":     {dbtest.Postgres, "pgx", postgres, "150"},
		"lib/pq":  {dbtest.Postgres, "postgres", postgres, "150"},
		"MariaDB": {dbtest.MySQL, "mysql", mariaDB, "0.15"},
	} {
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
			t.Run(name+", "+isolation.String(), func(t *testing.T) {
				t.Parallel()
				db := test.database(t)
				must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
				pool := limited(db.OpenDSN(t, test.driver, db.DSN), 1)
				limit := func(value string) {
					_, err := pool.ExecContext(t.Context(), test.set+value)
					must(t, err)
				}
				r, err := sqllock.NewRepository(t.Context(), pool.DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: isolation})
				must(t, err)
				registry := newRegistry(t, r, &sqllock.RegistryOptions{TTL: never})
				_, err = r.Acquire(t.Context(), "expired", r.NewHolder(), ttl)
				must(t, err)
				db.Shorten(t, "INT_LOCK", int(2*ttl.Seconds())+1)
				held, err := registry.TryLock(t.Context(), "held")
				must(t, err)

				pin, err := db.DB.BeginTxx(t.Context(), nil)
				must(t, err)
				defer func() { _ = pin.Rollback() }()
				_, err = pin.ExecContext(t.Context(), "SELECT 1 FROM INT_LOCK FOR UPDATE")
				must(t, err)
				limit(test.limit)
				if _, err := registry.TryLock(t.Context(), "expired"); !errors.Is(err, sqllock.ErrNotAcquired) {
					t.Errorf("TryLock: %v", err)
				}
				limit(test.limit) // the connection may be another one
				if err := held.Renew(t.Context()); !errors.Is(err, sqllock.ErrPinned) {
					t.Errorf("Renew: %v", err)
				}
				must(t, pin.Rollback())
				limit("0") // a slow machine may need longer
				must(t, held.Renew(t.Context()))
				taken, err := registry.Lock(t.Context(), "expired")
				must(t, err)
				must(t, taken.Unlock(t.Context()))
				must(t, held.Unlock(t.Context()))
			})
		}
	}
}
