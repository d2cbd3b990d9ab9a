package sqllock_test

import (
	"context"
	"database/sql"
	"testing"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

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
			few := withTheTablesAlone(t, db)
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

// withTheTablesAlone returns a pool of a user who may use nothing but the database's tables.
func withTheTablesAlone(t *testing.T, db *dbtest.DB) *sqlx.DB {
	t.Helper()
	config, err := mysql.ParseDSN(db.DSN)
	must(t, err)
	name := config.DBName[:min(24, len(config.DBName))] + "_few" // a user of MySQL has 32 characters
	user := "'" + name + "'@'%'"
	db.DB.MustExecContext(t.Context(), "CREATE USER "+user+" IDENTIFIED BY 'few'")
	t.Cleanup(func() { db.DB.MustExecContext(context.Background(), "DROP USER "+user) })
	db.DB.MustExecContext(t.Context(), "GRANT SELECT, INSERT, UPDATE, DELETE ON "+config.DBName+".* TO "+user)
	config.User, config.Passwd = name, "few"
	return db.OpenDSN(t, "mysql", config.FormatDSN())
}
