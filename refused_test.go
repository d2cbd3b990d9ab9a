package sqllock_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/migrations"
)

// A key that the server refuses is an error of its own caller, and of no other whose key is in the same
// batch.
func TestAKeyThatTheServerRefuses(t *testing.T) {
	t.Parallel()
	const constraint = "ALTER TABLE INT_LOCK ADD CHECK (LOCK_KEY <> 'bad')"
	policy := []string{"ALTER TABLE INT_LOCK ENABLE ROW LEVEL SECURITY", "CREATE POLICY sees ON INT_LOCK USING (true) WITH CHECK (LOCK_KEY <> 'bad')"}
	for _, test := range []struct {
		opener, by string
		statements []string
	}{
		{"sqlitelock", "a trigger", []string{"CREATE TRIGGER refuse BEFORE INSERT ON INT_LOCK WHEN NEW.LOCK_KEY = 'bad' BEGIN SELECT RAISE(ABORT, 'bad'); END"}},
		{"pgxlock", "a constraint", []string{constraint}},
		{"pgxlock", "a policy", policy},
		{"pqlock", "a policy", policy},
		{"pqlock", "a trigger", []string{
			"CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RAISE EXCEPTION ''bad''; END'",
			"CREATE TRIGGER refuse BEFORE INSERT ON INT_LOCK FOR EACH ROW WHEN (NEW.LOCK_KEY = 'bad') EXECUTE PROCEDURE refuse()",
		}},
		{"mysqllock", "a constraint", []string{constraint}},
		{"mysqllock, Oracle's server", "a constraint", []string{constraint}},
	} {
		t.Run(test.opener+", "+test.by, func(t *testing.T) {
			t.Parallel()
			o := byName(t, test.opener)
			db := o.database(t)
			dsn := db.DSN
			must(t, o.opened(t, dsn, openOptions{migrate: true}).Close(t.Context()))
			if test.by == "a policy" { // a superuser has none
				dsn, _ = withDocumentedGrants(t, db)
			}
			for _, statement := range test.statements {
				db.DB.MustExecContext(t.Context(), statement)
			}
			r := o.opened(t, dsn, openOptions{repository: sqllock.RepositoryOptions{Keys: sqllock.PlainKeys}, registry: sqllock.RegistryOptions{TTL: ttl}})
			for range 3 {
				lockBeside(t, r, "bad")
			}
		})
	}
}

// lockBeside locks and unlocks many keys at once. Only bad may fail.
func lockBeside(t *testing.T, r *sqllock.Registry, bad string) {
	t.Helper()
	var callers sync.WaitGroup
	for i := range 40 {
		key := fmt.Sprint("k", i)
		if i == 20 {
			key = bad
		}
		callers.Go(func() {
			lease, err := r.TryLock(t.Context(), key)
			switch {
			case key == bad:
				if !errors.Is(err, sqllock.ErrDatabase) {
					t.Errorf("%s: %v", key, err)
				}
			case err != nil:
				t.Error(err)
			default:
				if err := lease.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	callers.Wait()
}

// Nor does a row whose renewal the server refuses end the leases of others.
func TestARenewalThatTheServerRefuses(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := virtual.Migrated(t, dialect.Spring7)
		r := newRegistry(t, newRepository(t, db.DB, &sqllock.RepositoryOptions{Keys: sqllock.PlainKeys}), &sqllock.RegistryOptions{TTL: ttl, AutoRenew: true})
		leases := make(map[string]*sqllock.Lease)
		for i := range 100 {
			key := fmt.Sprint("k", i)
			lease, err := r.TryLock(t.Context(), key)
			must(t, err)
			leases[key] = lease
		}
		joint, err := r.ObtainAll("a", "b", "c")
		must(t, err)
		leases["joint"], err = joint.TryLock(t.Context())
		must(t, err)
		db.DB.MustExecContext(t.Context(), "CREATE TRIGGER refuse BEFORE UPDATE ON INT_LOCK WHEN OLD.LOCK_KEY IN ('k40', 'k70') BEGIN SELECT RAISE(ABORT, 'bad'); END")
		time.Sleep(2 * ttl)
		for key, lease := range leases {
			if refused := key == "k40" || key == "k70"; refused != (lease.Context().Err() != nil) {
				t.Errorf("%s: %v", key, lease.Context().Err())
			}
		}
	})
}

// Keys of a joint lock that the collation takes for one can never be acquired together.
func TestAJointLockOfKeysThatAreOneRow(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		open      func(testing.TB) *dbtest.DB
		prepare   []string
		collation string
	}{
		"MariaDB": {open: dbtest.MySQL, prepare: []string{"ALTER TABLE INT_LOCK CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_general_ci"}, collation: "utf8mb4_general_ci"},
		"MySQL":   {open: dbtest.OracleMySQL, prepare: []string{"ALTER TABLE INT_LOCK CONVERT TO CHARACTER SET utf8mb4 COLLATE utf8mb4_0900_ai_ci"}, collation: "utf8mb4_0900_ai_ci"},
		"PostgreSQL": {open: dbtest.Postgres, prepare: []string{
			"CREATE COLLATION without_case (provider = icu, locale = 'und-u-ks-level2', deterministic = false)",
			"ALTER TABLE INT_LOCK ALTER LOCK_KEY TYPE CHAR(36) COLLATE without_case",
		}, collation: "without_case"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := test.open(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			for _, statement := range test.prepare {
				db.DB.MustExecContext(t.Context(), statement)
			}
			for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.Autocommit} {
				r, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, &sqllock.RepositoryOptions{Keys: sqllock.PlainKeys, Isolation: isolation})
				must(t, err)
				registry := newRegistry(t, r, &sqllock.RegistryOptions{TTL: ttl})
				joint, err := registry.ObtainAll("job", "JOB", "other")
				must(t, err)
				other, err := registry.TryLock(t.Context(), "other")
				must(t, err)
				_, err = joint.TryLock(t.Context())
				if !errors.Is(err, sqllock.ErrNotAcquired) && db.Name != "postgres" {
					t.Errorf("while another holds one of the keys: %v", err)
				}
				must(t, other.Unlock(t.Context()))
				if _, err := joint.Lock(t.Context()); !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), test.collation) {
					t.Error(err)
				}
				rows, err := r.List(t.Context())
				must(t, err)
				if len(rows) > 0 {
					t.Errorf("rows %+v", rows)
				}
				// In a batch of several callers the second of the two waits for the first.
				lockBesideEqual(t, registry)
			}
		})
	}
}

// lockBesideEqual has callers of two keys that are one row meet in batches with others.
func lockBesideEqual(t *testing.T, r *sqllock.Registry) {
	t.Helper()
	var callers sync.WaitGroup
	for _, key := range []string{"a", "b", "job", "c", "JOB", "d", "Job", "e"} {
		callers.Go(func() {
			if err := r.ExecuteLocked(t.Context(), key, func(ctx context.Context) error { return ctx.Err() }); err != nil {
				t.Errorf("%s: %v", key, err)
			}
		})
	}
	callers.Wait()
}
