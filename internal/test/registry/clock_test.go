package registry_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// TestClock_WrongOneChangesNothing has a process whose clock says that it is the year
// 2000, as in every bubble, compete with rows of the database's clock.
func TestClock_WrongOneChangesNothing(t *testing.T) {
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
		lease := locked(t, obtain(t, wrong, "k"))
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
