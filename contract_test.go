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
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		runLayouts(t, db, db.DB)
	})
}

// TestContractPgx is TestContract on PostgreSQL through pgx instead of lib/pq.
func TestContractPgx(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	pool, err := sqlx.Open("pgx", db.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pool.Close() })
	runLayouts(t, db, pool)
}

func runLayouts(t *testing.T, db *dbtest.DB, pool *sqlx.DB) {
	t.Helper()
	pool.SetMaxOpenConns(20) // a server has a limit; waiting for a connection is no failure
	for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
		prefix := fmt.Sprintf("L%d_", layout)
		if err := migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Prefix: prefix, Layout: layout}); err != nil {
			t.Fatal(err)
		}
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.ReadCommitted, sqllock.Statement} {
			t.Run(fmt.Sprintf("%v/%v", layout, isolation), func(t *testing.T) {
				t.Parallel()
				contract.Run(t, contract.Cell{
					Dialect: db.Dialect, Layout: layout, Isolation: isolation, Prefix: prefix, DB: pool,
				})
			})
		}
	}
}
