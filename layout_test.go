package sqllock_test

import (
	"errors"
	"testing"
	"time"

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
	holder, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, given)
	must(t, err)
	lease, err := obtain(t, newRegistry(t, holder, &sqllock.RegistryOptions{TTL: ttl}), "k").Lock(t.Context())
	must(t, err)
	tx, err := db.DB.BeginTxx(t.Context(), nil)
	must(t, err)
	must(t, lease.Guard(t.Context(), tx))

	rival, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, given)
	must(t, err)
	_, err = obtain(t, newRegistry(t, rival, nil), "k").TryLock(t.Context())
	var heldBy *sqllock.HeldError
	if !errors.As(err, &heldBy) || heldBy.Holder != lease.Holder() {
		t.Error(err)
	}
	must(t, tx.Commit())
	must(t, lease.Unlock(t.Context()))
}

// The rows of the four-column table do not say when they expire, so one time-to-live judges
// all of them: that of the repository.
func TestTheFourColumnTableHasOneTimeToLive(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, &migrations.Options{Layout: dialect.Spring6}))
	const own = 3 * time.Minute
	r := newRepository(t, db.DB, &sqllock.RepositoryOptions{TTL: own})
	for _, opts := range []sqllock.RegistryOptions{{TTL: own + 1}, {TTL: sqllock.DefaultTTL}, {MaxHold: own - 1}} {
		if _, err := sqllock.NewRegistry(r, &opts); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%+v: %v", opts, err)
		}
	}
	newRegistry(t, r, &sqllock.RegistryOptions{TTL: own, MaxHold: own})
	lock := obtain(t, newRegistry(t, r, nil), "k")
	if _, err := lock.WithTTL(own + 1).TryLock(t.Context()); !errors.Is(err, sqllock.ErrInvalid) {
		t.Error(err)
	}
	lease, err := lock.WithTTL(own).TryLock(t.Context())
	must(t, err)
	if left := time.Until(lease.Deadline()); left > own || left < own-time.Minute {
		t.Errorf("%v left", left)
	}
	if err := lease.RenewFor(t.Context(), own+1); !errors.Is(err, sqllock.ErrInvalid) {
		t.Error(err)
	}
	row, ok, err := r.Peek(t.Context(), "k")
	must(t, err)
	other, _, err := newRepository(t, db.DB, &sqllock.RepositoryOptions{TTL: 2 * own}).Peek(t.Context(), "k")
	must(t, err)
	if !ok || row.Left > own || row.Left < own-time.Minute || other.Left <= own {
		t.Errorf("%v and %v left", row.Left, other.Left)
	}
	must(t, lease.Unlock(t.Context()))
	if _, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{TTL: sqllock.MinTTL - 1}); !errors.Is(err, sqllock.ErrInvalid) {
		t.Error(err)
	}

	// With EXPIRED_AFTER each registry has its own.
	newRegistry(t, newRepository(t, migrated(t).DB, &sqllock.RepositoryOptions{TTL: own}), &sqllock.RegistryOptions{TTL: own + 1})
}
