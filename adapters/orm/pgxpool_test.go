package orm_test

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

func TestPgxpool(t *testing.T) {
	t.Parallel()
	test := dbtest.Postgres(t)
	prepare(t, test)
	pool := check.Value(pgxpool.New(t.Context(), test.DSN))(t)
	t.Cleanup(pool.Close)
	db := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() { must(t, db.Close()) })
	guarded(t, test, db, func(ctx context.Context, lease *sqllock.Lease) error {
		err := pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := sqllock.GuardFunc(ctx, lease, tx.QueryRow); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "UPDATE accounts SET balance = balance - 10 WHERE id = 1")
			return err
		})
		return err
	})
}
