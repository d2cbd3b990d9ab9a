package virtual

import (
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
)

// Migrated returns a database in virtual time, in a new file that has the lock table in a
// layout. Called in a bubble, its pool ends with the bubble.
func Migrated(tb testing.TB, layout dialect.Layout) *dbtest.DB {
	tb.Helper()
	return dbtest.SQLiteFrom(tb, virtualsqlite.Name, virtualsqlite.Template(tb, layout))
}
