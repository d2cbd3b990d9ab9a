package dbtest

import (
	"testing"

	_ "github.com/jackc/pgx/v5/stdlib" // the driver "pgx"
	"github.com/jmoiron/sqlx"
)

// open returns a pool that has answered a ping. It is closed when the test ends, before all
// cleanups that were registered earlier.
func open(tb testing.TB, driver, dsn string) *sqlx.DB {
	tb.Helper()
	db, err := sqlx.ConnectContext(tb.Context(), driver, dsn)
	if err != nil {
		tb.Fatalf("open %s %s: %v", driver, dsn, err)
	}
	tb.Cleanup(func() {
		if err := db.Close(); err != nil {
			tb.Errorf("close %s: %v", driver, err)
		}
	})
	return db
}
