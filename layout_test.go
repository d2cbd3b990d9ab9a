package sqllock_test

import (
	"errors"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// Oracle's MySQL has a statement wait for a pinned row for 50 s. So each attempt reads the row
// before, also if the layout was given and the server has not been asked what it is.
func TestATryDoesNotWaitForAPinnedRowWithALayoutGiven(t *testing.T) {
	t.Parallel()
	db := dbtest.OracleMySQL(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	given := &sqllock.RepositoryOptions{Layout: dialect.Spring7}
	holder, err := sqllock.NewRepository(t.Context(), db.DB, db.Dialect, given)
	must(t, err)
	lease, err := obtain(t, newRegistry(t, holder, &sqllock.RegistryOptions{TTL: ttl}), "k").Lock(t.Context())
	must(t, err)
	tx, err := db.DB.BeginTxx(t.Context(), nil)
	must(t, err)
	must(t, lease.Guard(t.Context(), tx))

	rival, err := sqllock.NewRepository(t.Context(), db.DB, db.Dialect, given)
	must(t, err)
	_, err = obtain(t, newRegistry(t, rival, nil), "k").TryLock(t.Context())
	var heldBy *sqllock.HeldError
	if !errors.As(err, &heldBy) || heldBy.Holder != lease.Holder() {
		t.Error(err)
	}
	must(t, tx.Commit())
	must(t, lease.Unlock(t.Context()))
}
