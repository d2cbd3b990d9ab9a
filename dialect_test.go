package sqllock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// A dialect that is not the database's is refused, with the names of both, whether or not the
// table is there.
func TestAWrongDialectIsRefused(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *dbtest.DB{
		"sqlite": dbtest.SQLite, "postgres": dbtest.Postgres, "mysql": dbtest.MySQL, "oracle": dbtest.OracleMySQL,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			pools := map[string]*sqlx.DB{db.Driver: db.DB}
			if db.Name == "postgres" {
				pools["pgx"] = db.OpenDSN(t, "pgx", db.DSN)
			}
			for driver, pool := range pools {
				for _, d := range []dialect.Dialect{dialect.Postgres(), dialect.MySQL(), dialect.SQLite()} {
					for _, prefix := range []string{"", "NONE_"} {
						_, err := sqllock.NewRepository(t.Context(), pool.DB, d, &sqllock.RepositoryOptions{Prefix: prefix})
						if d.Name != db.Name {
							isWrongDialect(t, err, d.Name, db.Name)
						} else if prefix == "" && err != nil || prefix != "" && !errors.Is(err, sqllock.ErrSchema) {
							t.Errorf("%s, %s, %q: %v", driver, d.Name, prefix, err)
						}
					}
				}
			}
		})
	}
}

func isWrongDialect(t *testing.T, err error, given, needed string) {
	t.Helper()
	if !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), "dialect is "+given) || !strings.Contains(err.Error(), "dialect "+needed) {
		t.Errorf("%s for %s: %v", given, needed, err)
	}
}
