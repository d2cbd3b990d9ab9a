package migrations_test

import (
	"context"
	"crypto/rand"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

func TestPrefix(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		up(t, db, nil)
		up(t, db, &migrations.Options{Prefix: "Billing_"})
		want := []string{
			"billing_lock", "billing_lock_fence", "billing_lock_migrations", "billing_lock_name",
			"int_lock", "int_lock_fence", "int_lock_migrations", "int_lock_name",
		}
		same(t, "tables", want, tables(t, db))
		must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 0, nil))
		same(t, "tables", want[:4], tables(t, db))
	})
}

func TestPrefixWithSchema(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		prefix := schema(t, db) + ".INT_"
		opts := &migrations.Options{Prefix: prefix}
		before := tables(t, db)
		up(t, db, opts)
		check.Equal(t, "columns", columns(t, db, prefix+"LOCK"), five)
		if db.Name != "sqlite" { // there, it is the default schema
			same(t, "tables outside of the schema", before, tables(t, db))
		}
		must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 2, opts))
		must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 4, opts))
		want := migrations.State{
			Version: 4, Target: 4, Latest: 4, Layout: dialect.Spring7,
			Table: prefix + "LOCK", Bookkeeping: prefix + "LOCK_MIGRATIONS",
		}
		same(t, "state", want, status(t, db, opts))
		must(t, migrations.Goto(t.Context(), db.DB.DB, db.Dialect, 0, opts))
		if st := status(t, db, opts); st.Version != 0 || st.Layout != 0 {
			t.Errorf("state %+v", st)
		}
	})
}

// schema creates another schema and returns its name. The names that dbtest chooses are
// too long for a prefix.
func schema(t *testing.T, db *dbtest.DB) string {
	t.Helper()
	if db.Name == "sqlite" {
		return "main"
	}
	name := "s_" + strings.ToLower(rand.Text())
	run(t, db, "CREATE SCHEMA "+name)
	drop := "DROP SCHEMA " + name
	if db.Name == "postgres" {
		drop += " CASCADE"
	}
	t.Cleanup(func() {
		check.Is(t, check.ErrorOf(db.DB.ExecContext(context.WithoutCancel(t.Context()), drop)), nil)
	})
	return name
}
