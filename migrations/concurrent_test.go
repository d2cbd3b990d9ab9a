package migrations_test

import (
	"bytes"
	"os"
	"os/exec"
	"sync"
	"testing"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

func TestConcurrentProcesses(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		self := check.Value(os.Executable())(t)
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				process := exec.CommandContext(t.Context(), self)
				process.Env = append(os.Environ(), childDriver+"="+db.Driver, childDSN+"="+db.DSN)
				var said bytes.Buffer
				process.Stderr = &said
				if err := process.Run(); err != nil {
					t.Errorf("%v: %s", err, &said)
				}
			})
		}
		all.Wait()
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
