package sqllock_test

import (
	"fmt"
	"testing"

	"github.com/jmoiron/sqlx"

	_ "github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/contract"
	"github.com/sqllock/sqllock/internal/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// TestContract runs the behaviour suite for every database and driver, both
// layouts and all isolations.
func TestContract(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(*testing.T) (*dbtest.DB, *sqlx.DB){
		// A file each: SQLite's writers are not served in the order in which they
		// come, and a crowd of them would starve a heartbeat.
		"sqlite":       func(t *testing.T) (*dbtest.DB, *sqlx.DB) { db := dbtest.SQLite(t); return db, db.DB },
		"postgres":     func(t *testing.T) (*dbtest.DB, *sqlx.DB) { db := dbtest.Postgres(t); return db, db.DB },
		"postgres-pgx": func(t *testing.T) (*dbtest.DB, *sqlx.DB) { db := dbtest.Postgres(t); return db, pgx(t, db) },
		"mysql":        func(t *testing.T) (*dbtest.DB, *sqlx.DB) { db := dbtest.MySQL(t); return db, db.DB },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
				for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.ReadCommitted, sqllock.Statement} {
					t.Run(fmt.Sprintf("%v/%v", layout, isolation), func(t *testing.T) {
						t.Parallel()
						db, pool := open(t)
						pool.SetMaxOpenConns(20) // a server has a limit; waiting for a connection is no failure
						must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Layout: layout}))
						contract.Run(t, contract.Cell{Dialect: db.Dialect, Layout: layout, Isolation: isolation, DB: pool})
					})
				}
			}
		})
	}
}

// pgx opens the database through pgx instead of lib/pq.
func pgx(t *testing.T, db *dbtest.DB) *sqlx.DB {
	t.Helper()
	pool, err := sqlx.Open("pgx", db.DSN)
	must(t, err)
	t.Cleanup(func() { must(t, pool.Close()) })
	return pool
}
