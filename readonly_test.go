package sqllock_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// Sessions may be read-only although the server is not. Open says so; over a pool of one's own the first acquisition
// does, and Close has nothing to delete.
func TestReadOnlySessions(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	dsn := db.With(t, map[string]string{"default_transaction_read_only": "on"})
	for _, o := range []opener{byName(t, "pgxlock"), byName(t, "pqlock")} {
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
			_, err := o.open(t.Context(), dsn, openOptions{repository: sqllock.RepositoryOptions{Isolation: isolation}})
			if !errors.Is(err, sqllock.ErrReadOnly) {
				t.Errorf("%s, %v: %v", o.name, isolation, err)
			}
		}
	}
	for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
		r, err := sqllock.NewRepository(t.Context(), db.OpenDSN(t, "pgx", dsn).DB, db.Dialect, &sqllock.RepositoryOptions{Isolation: isolation})
		must(t, err)
		registry, err := sqllock.NewRegistry(r, nil)
		must(t, err)
		if _, err := registry.TryLock(t.Context(), "k"); !errors.Is(err, sqllock.ErrReadOnly) {
			t.Errorf("%v: %v", isolation, err)
		}
		if err := registry.Close(context.Background()); err != nil {
			t.Errorf("%v: Close: %v", isolation, err)
		}
	}
}

// A schema that must be quoted cannot be used, and the error says why.
func TestSchemasThatMustBeQuoted(t *testing.T) {
	t.Parallel()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		for _, prefix := range []string{"order.INT_", "Mixed.INT_"} {
			_, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{Prefix: prefix})
			if !errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), "without quotes") {
				t.Errorf("%s: %v", prefix, err)
			}
		}
	})
}
