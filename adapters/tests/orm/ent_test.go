package orm_test

import (
	"context"
	"testing"

	entdialect "entgo.io/ent/dialect"
	entsql "entgo.io/ent/dialect/sql"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

func TestEnt(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, test *dbtest.DB) {
		t.Helper()
		prepare(t, test)
		driver := entsql.OpenDB(entDialects[test.Dialect.String()], test.DB.DB)
		client := &entClient{driver: driver}
		guarded(t, test, driver.DB(), func(ctx context.Context, lease *sqllock.Lease) error {
			return withdrawByEnt(ctx, client, lease)
		})
	})
}

func withdrawByEnt(ctx context.Context, client *entClient, lease *sqllock.Lease) error {
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

// entClient stands in for the client that ent generates, which would be 3300 lines here. Like that one, it
// sends its statements through ent's driver: what begins the transaction, guards it and commits it is ent's.
type entClient struct{ driver *entsql.Driver }

// Tx returns ent's own transaction. With the feature sql/execquery, the generated one passes
// ExecContext and QueryContext on to it.
func (c *entClient) Tx(ctx context.Context) (*entTx, error) {
	tx, err := c.driver.Tx(ctx)
	if err != nil {
		return nil, err
	}
	return &entTx{Tx: tx.(*entsql.Tx), Account: entAccounts{tx, c.driver.Dialect()}}, nil
}

type entTx struct {
	*entsql.Tx
	Account entAccounts
}

type entAccounts struct {
	tx      entdialect.Tx
	dialect string
}

func (a entAccounts) UpdateOneID(id int64) *entUpdate {
	return &entUpdate{a.tx, entsql.Dialect(a.dialect).Update("accounts").Where(entsql.EQ("id", id))}
}

type entUpdate struct {
	tx      entdialect.Tx
	builder *entsql.UpdateBuilder
}

func (u *entUpdate) AddBalance(n int) *entUpdate {
	u.builder.Add("balance", n)
	return u
}

func (u *entUpdate) Exec(ctx context.Context) error {
	query, args := u.builder.Query()
	return u.tx.Exec(ctx, query, args, nil)
}

var entDialects = map[string]string{"postgres": entdialect.Postgres, "mysql": entdialect.MySQL, "sqlite": entdialect.SQLite}
