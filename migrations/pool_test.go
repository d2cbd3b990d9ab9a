package migrations_test

import (
	"database/sql"
	"net/url"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// TestOneConnection uses a pool of one connection, which must be returned after success
// and after failure.
func TestOneConnection(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		cycle(t, db, db.DB)
	})
}

// TestSettings uses drivers with settings that could get in the way. Each has a server's database of its own, and
// DDL takes seconds beside other tests.
func TestSettings(t *testing.T) {
	t.Parallel()
	type parameters map[string]string
	for name, test := range map[string]struct {
		database func(testing.TB) *dbtest.DB
		driver   string
		parameters
	}{
		"pgx":             {dbtest.Postgres, "pgx", nil},
		"pgx, simple":     {dbtest.Postgres, "pgx", parameters{"default_query_exec_mode": "simple_protocol"}},
		"pgx, exec":       {dbtest.Postgres, "pgx", parameters{"default_query_exec_mode": "exec"}},
		"strict defaults": {dbtest.Postgres, "postgres", parameters{"default_transaction_isolation": "serializable", "default_transaction_read_only": "on"}},

		"multiStatements":   {dbtest.MySQL, "mysql", parameters{"multiStatements": "true"}},
		"clientFoundRows":   {dbtest.MySQL, "mysql", parameters{"clientFoundRows": "true"}},
		"parseTime":         {dbtest.MySQL, "mysql", parameters{"parseTime": "true"}},
		"interpolateParams": {dbtest.MySQL, "mysql", parameters{"interpolateParams": "true"}},
		"time zone":         {dbtest.MySQL, "mysql", parameters{"time_zone": "'+05:00'"}},
		"no autocommit":     {dbtest.MySQL, "mysql", parameters{"autocommit": "0"}},
		"ANSI":              {dbtest.MySQL, "mysql", parameters{"sql_mode": "'ANSI,TRADITIONAL,NO_BACKSLASH_ESCAPES'"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := test.database(t)
			cycle(t, db, db.OpenDSN(t, test.driver, db.With(t, test.parameters)))
		})
	}
}

func TestSQLiteInMemory(t *testing.T) {
	t.Parallel()
	pool := sqlx.MustOpen("sqlite", ":memory:")
	t.Cleanup(func() { must(t, pool.Close()) })
	cycle(t, &dbtest.DB{Name: "sqlite", DB: pool, Dialect: dialect.SQLite()}, pool)
}

func TestSQLiteRollbackJournal(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	pool := sqlx.MustOpen("sqlite", withoutBusyTimeout(db)+"&_pragma=journal_mode(DELETE)")
	t.Cleanup(func() { must(t, pool.Close()) })
	must(t, db.DB.Close())
	cycle(t, &dbtest.DB{Name: "sqlite", DB: pool, Dialect: dialect.SQLite()}, pool)
}

// withoutBusyTimeout returns the DSN without a busy_timeout.
func withoutBusyTimeout(db *dbtest.DB) string {
	return strings.ReplaceAll(db.DSN, url.QueryEscape("busy_timeout(10000)"), url.QueryEscape("busy_timeout(0)"))
}

// cycle migrates through all versions and an error. It checks that the pool's only
// connection is returned unchanged each time: a connection or a transaction that was left
// open would block the next step.
func cycle(t *testing.T, db *dbtest.DB, pool *sqlx.DB) {
	t.Helper()
	pool.SetMaxOpenConns(1)
	before := settings(t, db, pool)
	for _, version := range []uint{4, 1, 3, 2, 0, 4} {
		must(t, migrations.Goto(t.Context(), pool.DB, db.Dialect, version, nil))
		st := check.Value(migrations.Status(t.Context(), pool.DB, db.Dialect, nil))(t)
		check.Equal(t, "version", st.Version, version)
	}
	acquire(t, db.DB, db.Dialect, dialect.Spring7)
	wantErr(t, migrations.Goto(t.Context(), pool.DB, db.Dialect, 0, nil), migrations.ErrHeld)
	same(t, "the pool's settings", before, settings(t, db, pool))
	tx := check.Value(pool.BeginTx(t.Context(), nil))(t)
	must(t, tx.Rollback())
	check.Equal(t, "connections in use", pool.Stats().InUse, 0)
	must(t, migrations.Goto(t.Context(), pool.DB, db.Dialect, 0, &migrations.Options{Force: true}))
}

func settings(t *testing.T, db *dbtest.DB, pool *sqlx.DB) (all []string) {
	t.Helper()
	for _, query := range map[string][]string{
		"postgres": {"SELECT current_setting('lock_timeout')", "SELECT COUNT(*) FROM pg_locks WHERE locktype = 'advisory' AND pid = pg_backend_pid()"},
		"mysql":    {"SELECT @@lock_wait_timeout", "SELECT @@innodb_lock_wait_timeout"},
		"sqlite":   {"PRAGMA busy_timeout"},
	}[db.Name] {
		var value sql.NullString
		must(t, pool.GetContext(t.Context(), &value, query))
		all = append(all, value.String)
	}
	return all
}
