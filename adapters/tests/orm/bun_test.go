package orm_test

import (
	"context"
	"testing"

	"github.com/uptrace/bun"
	"github.com/uptrace/bun/dialect/mysqldialect"
	"github.com/uptrace/bun/dialect/pgdialect"
	"github.com/uptrace/bun/dialect/sqlitedialect"
	"github.com/uptrace/bun/schema"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

func TestBun(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, test *dbtest.DB) {
		t.Helper()
		prepare(t, test)
		db := bun.NewDB(test.DB.DB, bunDialects[test.Dialect.String()]())
		guarded(t, test, db.DB, func(ctx context.Context, lease *sqllock.Lease) error {
			err := db.RunInTx(ctx, nil, func(ctx context.Context, tx bun.Tx) error {
				if err := lease.Guard(ctx, tx.Tx); err != nil {
					return err
				}
				_, err := tx.NewUpdate().Table("accounts").Set("balance = balance - 10").Where("id = 1").Exec(ctx)
				return err
			})
			return err
		})
	})
}

var bunDialects = map[string]func() schema.Dialect{
	"postgres": func() schema.Dialect { return pgdialect.New() },
	"mysql":    func() schema.Dialect { return mysqldialect.New() },
	"sqlite":   func() schema.Dialect { return sqlitedialect.New() },
}
