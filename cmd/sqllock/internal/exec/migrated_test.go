package exec

import (
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// clockPrecision is how much the clocks of SQLite, which counts milliseconds, and of this process can seem to differ.
const clockPrecision = 5 * time.Millisecond

// migrated creates the tables, and returns their repository.
func migrated(t *testing.T, db *dbtest.DB) *sqllock.Repository {
	t.Helper()
	check.Must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	return check.Value(sqllock.NewRepository(dbtest.Unhurried(t.Context()), db.DB.DB, db.Dialect, nil))(t)
}
