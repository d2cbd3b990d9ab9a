package migrations_test

import (
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

func TestConcurrentProcesses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		var processes []*child.Process
		for range 4 {
			processes = append(processes, child.Start(t, "up", childDriver+"="+db.Driver, childDSN+"="+db.DSN))
		}
		for _, p := range processes {
			<-p.Ended
			check.Is(t, p.Err, nil)
		}
		wantAt(t, db, 4, dialect.Spring7)
		wantTables(t, db)
	})
}

// wantTables checks that there are no other tables.
func wantTables(t *testing.T, db *dbtest.DB) {
	t.Helper()
	want := []string{"int_lock", "int_lock_fence", "int_lock_migrations", "int_lock_name"}
	same(t, "tables", want, tables(t, db))
}
