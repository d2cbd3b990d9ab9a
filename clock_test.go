package sqllock_test

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// TestAWrongClockChangesNothing has a process whose clock says that it is the year
// 2000, as in every bubble, compete with rows of the database's clock.
func TestAWrongClockChangesNothing(t *testing.T) {
	t.Parallel()
	outside := dbtest.SQLite(t) // its clock is the machine's, in bubbles too
	must(t, migrations.Up(t.Context(), outside.DB.DB, outside.Dialect, nil))
	right := newRepository(t, outside.DB, nil)
	taken, err := right.Acquire(t.Context(), "taken", right.NewHolder(), ttl)
	must(t, err)
	if !taken.Acquired {
		t.Fatal(taken)
	}
	synctest.Test(t, func(t *testing.T) {
		if year := time.Now().Year(); year != 2000 {
			t.Fatalf("the test wants a wrong clock, this is %d", year)
		}
		db, err := sqlx.Open(outside.Driver, outside.DSN)
		must(t, err)
		defer db.Close()
		wrong := newRegistry(t, newRepository(t, db, nil), &sqllock.RegistryOptions{TTL: ttl})
		_, err = obtain(t, wrong, "taken").TryLock(t.Context())
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Left < ttl/2 || held.Left > ttl {
			t.Errorf("a row of the right clock, to the wrong one: %v", err)
		}
		lease, err := obtain(t, wrong, "k").Lock(t.Context())
		must(t, err)
		row, ok, err := right.Peek(t.Context(), "k")
		must(t, err)
		if !ok || row.Left < ttl/2 || row.Left > ttl || row.Age < 0 || row.Age > ttl/2 {
			t.Errorf("a row of the wrong clock, to the right one: %+v", row)
		}
		must(t, lease.Renew(t.Context()))
		must(t, lease.Unlock(t.Context()))
		must(t, wrong.Close(t.Context()))
	})
}

// TestNoInstantIsOfTheWallClock looks for instants that have lost their monotonic clock: a
// wait until one of them lasts for hours if the clock is set back by hours. No test can set
// the clock of the machine.
func TestNoInstantIsOfTheWallClock(t *testing.T) {
	t.Parallel()
	wall := []string{"Unix", "UnixMilli", "UnixMicro", "UnixNano", "AddDate"}
	files, err := filepath.Glob("*.go")
	must(t, err)
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		set := token.NewFileSet()
		parsed, err := parser.ParseFile(set, file, nil, 0)
		must(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && slices.Contains(wall, s.Sel.Name) {
				t.Errorf("%v: %s", set.Position(s.Pos()), s.Sel.Name)
			}
			return true
		})
	}
}
