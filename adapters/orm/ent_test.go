package orm_test

import (
	"context"
	"testing"

	entdialect "entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/orm/internal/ent"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

func TestEnt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, test *dbtest.DB) {
		t.Helper()
		prepare(t, test)
		driver := entsql.OpenDB(entDialect(test), test.DB.DB)
		client := ent.NewClient(ent.Driver(driver))
		check(t, test, driver.DB(), func(ctx context.Context, lease *sqllock.Lease) error {
			return withdrawByEnt(ctx, client, lease)
		})
	})
}

func withdrawByEnt(ctx context.Context, client *ent.Client, lease *sqllock.Lease) error {
	tx, err := client.Tx(ctx)
	if err != nil {
		return err
	}
	defer tx.Rollback()
	if err := lease.Guard(ctx, tx); err != nil {
		return err
	}
	if err := tx.Account.UpdateOneID(1).AddBalance(-10).Exec(ctx); err != nil {
		return err
	}
	return tx.Commit()
}

func entDialect(test *dbtest.DB) string {
	switch test.Dialect.Name {
	case "postgres":
		return entdialect.Postgres
	case "mysql":
		return entdialect.MySQL
	default:
		return entdialect.SQLite
	}
}
