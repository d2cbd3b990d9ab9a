package sqllock_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// A session with autocommit=0 would undo releases and renewals when it ends: after the row's end there
// could be a second holder. It is refused at once, in each isolation.
func TestASessionThatDoesNotCommitIsRefused(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *dbtest.DB{"MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			config, err := mysql.ParseDSN(db.DSN)
			must(t, err)
			if config.Params == nil {
				config.Params = make(map[string]string)
			}
			config.Params["autocommit"] = "0"
			pool, err := sqlx.Open("mysql", config.FormatDSN())
			must(t, err)
			t.Cleanup(func() { must(t, pool.Close()) })
			for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
				_, err = sqllock.NewRepository(t.Context(), pool.DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: isolation})
				if !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), "autocommit=1") {
					t.Errorf("%v: error %v", isolation, err)
				}
			}
		})
	}
}
