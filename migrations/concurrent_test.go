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
	"github.com/sqllock/sqllock/migrations"
)

// TestConcurrentUpAndDown: eight pools adopt Spring's table and go through four versions each, one after the other, which
// takes seconds.
func TestConcurrentUpAndDown(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		spring(t, db, dialect.Spring6)
		var all sync.WaitGroup
		for i := range 8 {
			pool := db.Open(t)
			all.Go(func() {
				for v := range 4 {
					check.Is(t, migrations.Goto(t.Context(), pool.DB, db.Dialect, uint(i*3+v)%5, nil), nil)
				}
			})
		}
		all.Wait()
		up(t, db, &migrations.Options{Layout: dialect.Spring7})
		wantAt(t, db, 4, dialect.Spring7)
		wantTables(t, db)
	})
}

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
