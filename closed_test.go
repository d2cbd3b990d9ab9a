package sqllock_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// closing is how many calls follow the end of all connections, one after the other.
const closing = 5

// A restart of the server, or a failover, closes all connections of a pool that were used just before.
// No call fails that can be sent again, whatever the driver and the pool, and no lock stays taken.
func TestClosedConnectionsArePassedOver(t *testing.T) {
	t.Parallel()
	own := func(driver string) func(*testing.T, *dbtest.DB, string) (*sqllock.Registry, *sqlx.DB) {
		return func(t *testing.T, db *dbtest.DB, dsn string) (*sqllock.Registry, *sqlx.DB) {
			t.Helper()
			return registryOver(t, db, limited(db.OpenDSN(t, driver, dsn), closing), nil)
		}
	}
	opened := func(name string) func(*testing.T, *dbtest.DB, string) (*sqllock.Registry, *sqlx.DB) {
		return func(t *testing.T, _ *dbtest.DB, dsn string) (*sqllock.Registry, *sqlx.DB) {
			t.Helper()
			return byName(t, name).opened(t, dsn, openOptions{registry: sqllock.RegistryOptions{TTL: ttl}}), nil
		}
	}
	for name, c := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		make     func(t *testing.T, db *dbtest.DB, dsn string) (*sqllock.Registry, *sqlx.DB) // the pool is nil if it is Open's
	}{
		"pgx": {dbtest.Postgres, own("pgx")},
		"pgx, autocommit": {dbtest.Postgres, func(t *testing.T, db *dbtest.DB, dsn string) (*sqllock.Registry, *sqlx.DB) {
			t.Helper()
			return registryOver(t, db, limited(db.OpenDSN(t, "pgx", dsn), closing), &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit})
		}},
		"pgxpool": {dbtest.Postgres, func(t *testing.T, db *dbtest.DB, dsn string) (*sqllock.Registry, *sqlx.DB) {
			t.Helper()
			pool := sqlx.NewDb(stdlib.OpenDBFromPool(pgxPool(t, dsn)), "pgx")
			t.Cleanup(func() { must(t, pool.Close()) })
			return registryOver(t, db, pool, nil)
		}},
		"lib/pq":       {dbtest.Postgres, own("postgres")},
		"MySQL":        {dbtest.MySQL, own("mysql")},
		"Oracle MySQL": {dbtest.OracleMySQL, own("mysql")},
		"pgxlock":      {dbtest.Postgres, opened("pgxlock")},
		"pqlock":       {dbtest.Postgres, opened("pqlock")},
		"mysqllock":    {dbtest.MySQL, opened("mysqllock")},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := c.database(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			dsn, end := endable(t, db)
			registry, pool := c.make(t, db, dsn)
			r := registry.Repository()
			var leases []*sqllock.Lease
			for i := range 2 * closing {
				lease, err := registry.Lock(t.Context(), fmt.Sprint(i))
				must(t, err)
				leases = append(leases, lease)
			}
			calls := []struct {
				name string
				call func(n int) error
			}{
				{"Unlock", func(n int) error { return leases[n].Unlock(t.Context()) }},
				{"TryLock", func(n int) error { _, err := registry.TryLock(t.Context(), fmt.Sprint(n)); return err }},
				{"Renew", func(n int) error { return leases[closing+n].Renew(t.Context()) }},
				{"List", func(int) error { _, err := r.List(t.Context()); return err }},
				{"DeleteExpired", func(int) error { _, err := r.DeleteExpired(t.Context()); return err }},
			}
			if pool != nil {
				calls = append(calls, struct {
					name string
					call func(n int) error
				}{"ExecuteLockedTx", func(n int) error {
					return registry.ExecuteLockedTx(t.Context(), fmt.Sprint("tx", n), pool.DB, nil, func(context.Context, *sql.Tx) error { return nil })
				}})
			}
			for _, one := range calls {
				for n := range closing {
					if pool != nil {
						use(t, pool)
					} else {
						_, err := r.List(t.Context())
						must(t, err)
					}
					end()
					if err := one.call(n); err != nil {
						t.Errorf("%s, %d: %v", one.name, n, err)
					}
				}
			}
		})
	}
}

func registryOver(t *testing.T, db *dbtest.DB, pool *sqlx.DB, o *sqllock.RepositoryOptions) (*sqllock.Registry, *sqlx.DB) {
	t.Helper()
	r, err := sqllock.NewRepository(t.Context(), pool.DB, db.Dialect, o)
	must(t, err)
	return newRegistry(t, r, &sqllock.RegistryOptions{TTL: ttl}), pool
}

// use uses all connections of a pool, so that none of them has been idle.
func use(t *testing.T, pool *sqlx.DB) {
	t.Helper()
	conns := make([]*sqlx.Conn, closing)
	for i := range conns {
		for conns[i] == nil || conns[i].PingContext(t.Context()) != nil { // the server has closed it before
			var err error
			conns[i], err = pool.Connx(t.Context())
			must(t, err)
			defer conns[i].Close()
		}
	}
}

// endable returns a DSN, and a function that ends all sessions over it.
func endable(t *testing.T, db *dbtest.DB) (dsn string, end func()) {
	t.Helper()
	dsn, of, kill := db.DSN, "id FROM information_schema.processlist WHERE db = DATABASE() AND id <> CONNECTION_ID()", "KILL %d"
	admin := limited(db.Open(t), 1)
	if db.Name == "postgres" {
		name := rand.Text()
		dsn = db.With(t, map[string]string{"application_name": name})
		of = "pid FROM pg_stat_activity WHERE application_name = '" + name + "'"
		kill = "SELECT pg_terminate_backend(%d)"
	} else {
		must(t, db.DB.Close()) // another pool over the same database
	}
	return dsn, func() {
		var ids []int64
		for {
			must(t, admin.SelectContext(t.Context(), &ids, "SELECT "+of))
			if len(ids) == 0 {
				return
			}
			for _, id := range ids {
				_, _ = admin.ExecContext(t.Context(), fmt.Sprintf(kill, id)) // it may be gone
			}
			ids = nil
			time.Sleep(time.Millisecond)
		}
	}
}
