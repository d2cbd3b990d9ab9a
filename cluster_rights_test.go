package sqllock_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// A user who may use nothing but the tables locks and guards. The question what cluster the server
// belongs to is answered, and does not take the snapshot of the transaction that asks.
func TestAUserWithTheTablesAlone(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *dbtest.DB{"MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			dsn, _ := withDocumentedGrants(t, db)
			few := db.OpenDSN(t, "mysql", dsn)
			r, err := sqllock.NewRepository(t.Context(), few.DB, db.Dialect, nil)
			must(t, err)
			must(t, newRegistry(t, r, nil).ExecuteLockedTx(t.Context(), "k", few.DB, nil, func(context.Context, *sql.Tx) error { return nil }))

			tx := few.MustBeginTx(t.Context(), nil)
			found, err := locktable.ReadCluster(t.Context(), tx, db.Dialect)
			must(t, err)
			db.DB.MustExecContext(t.Context(), "INSERT INTO INT_LOCK (REGION, LOCK_KEY, CREATED_DATE, EXPIRED_AFTER) VALUES ('r', 'late', '2026-01-01', '2026-01-01')")
			var rows int
			must(t, tx.GetContext(t.Context(), &rows, "SELECT COUNT(*) FROM INT_LOCK"))
			must(t, tx.Rollback())
			if found.Certifies() || rows != 1 {
				t.Errorf("%+v, and %d rows", found, rows)
			}
		})
	}
}
