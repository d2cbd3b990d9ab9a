package servers_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/sync/leader"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// A pooled is a database and a pool with the parameters that a program may have in its DSN.
type pooled struct {
	*dbtest.DB

	parameters      map[string]string
	multiStatements bool
}

// TestMigrationBesideProcesses adds EXPIRED_AFTER to a table that a process uses, and drops it. That process holds
// each kind of lock, renews and sweeps. It must not believe in a lease for longer than its row lasts for a process
// that is opened then, must acquire nothing, and must delete no row of another.
func TestMigrationBesideProcesses(t *testing.T) {
	t.Parallel()
	for name, on := range map[string]struct {
		open func(testing.TB) *dbtest.DB
		pooled
	}{
		"SQLite":                {open: dbtest.SQLite},
		"PostgreSQL":            {open: dbtest.Postgres},
		"the newest PostgreSQL": {open: dbtest.PostgresNewest},
		"MariaDB":               {open: dbtest.MySQL},
		"MariaDB, not strict":   {dbtest.MySQL, pooled{parameters: map[string]string{"sql_mode": "''"}}},
		"MariaDB, in messages":  {dbtest.MySQL, pooled{parameters: map[string]string{"multiStatements": "true", "interpolateParams": "true"}, multiStatements: true}},
		"MySQL":                 {open: dbtest.OracleMySQL},
		"MySQL, not strict":     {dbtest.OracleMySQL, pooled{parameters: map[string]string{"sql_mode": "''"}}},
		"MySQL, in messages":    {dbtest.OracleMySQL, pooled{parameters: map[string]string{"multiStatements": "true", "interpolateParams": "true"}, multiStatements: true}},
		"TiDB":                  {open: dbtest.TiDB},
		"TiDB, not strict":      {dbtest.TiDB, pooled{parameters: map[string]string{"sql_mode": "''"}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := on.pooled
			db.DB = on.open(t)
			up := migrations.Options{Layout: dialect.Spring6, TTL: ttl, Force: true}
			must(t, migrations.Up(t.Context(), db.DB.DB.DB, db.Dialect, &up))
			besideOldProcess(t, db, dialect.Spring7)
			besideOldProcess(t, db, dialect.Spring6)
		})
	}
}

// TestMigrationThatHasBegun has EXPIRED_AFTER as the migration adds it on MySQL: without values at first. A process
// that was opened before must not acquire then, although a row needs no end.
func TestMigrationThatHasBegun(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *dbtest.DB{"MariaDB": dbtest.MySQL, "MySQL": dbtest.OracleMySQL, "TiDB": dbtest.TiDB} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := pooled{DB: open(t)}
			must(t, migrations.Up(t.Context(), db.DB.DB.DB, db.Dialect, &migrations.Options{Layout: dialect.Spring6, TTL: ttl}))
			old := db.process(t)
			must(t, check.ErrorOf(db.DB.DB.ExecContext(t.Context(), "ALTER TABLE INT_LOCK ADD COLUMN EXPIRED_AFTER DATETIME(6)")))
			acquiresNothing(t, old)
		})
	}
}

// besideOldProcess migrates to a layout.
func besideOldProcess(t *testing.T, db pooled, layout dialect.Layout) {
	t.Helper()
	old := db.process(t)
	leases := leasesOfEachKind(t, old)
	kept := check.Value(obtain(t, old, "kept").WithMinHold(time.Hour).TryLock(t.Context()))(t)
	must(t, kept.Unlock(t.Context()))
	keeping := check.Value(obtain(t, old, "keeping").WithMinHold(time.Hour).TryLock(t.Context()))(t)

	version := map[dialect.Layout]uint{dialect.Spring6: 2, dialect.Spring7: 4}[layout]
	must(t, migrations.Goto(t.Context(), db.DB.DB.DB, db.Dialect, version, &migrations.Options{TTL: ttl, Force: true}))
	young := db.process(t)
	check.Equal(t, "layout", young.Repository().Layout(), layout)

	for kind, lease := range leases {
		if err := lease.Renew(t.Context()); !isOtherLayout(err) {
			t.Errorf("%s renewed its lease beside processes that do not know it: %v", kind, err)
		}
		must(t, lease.Context().Err())
		outlasts(t, kind, young.Repository(), lease)
	}
	is(t, check.ErrorOf(young.TryLock(t.Context(), "plain")), sqllock.ErrNotAcquired)
	check.Equal(t, "rows that stay for a minimum hold", minimumHolds(t, young.Repository()), 1)
	is(t, check.ErrorOf(young.TryLock(t.Context(), "kept")), sqllock.ErrNotAcquired)
	acquiresNothing(t, old)

	fresh := check.Value(young.TryLock(t.Context(), "fresh"))(t)
	must(t, check.ErrorOf(db.DB.DB.ExecContext(t.Context(), "UPDATE INT_LOCK SET CREATED_DATE = '2026-01-31 12:00:00.123' WHERE CLIENT_ID = '"+fresh.Holder()+"'")))
	if _, err := old.Repository().DeleteExpired(t.Context()); !isOtherLayout(err) {
		t.Errorf("swept rows whose end it does not know: %v", err)
	}
	if layout == dialect.Spring7 {
		must(t, fresh.Renew(t.Context()))
	}
	if err := keeping.Unlock(t.Context()); !isOtherLayout(err) {
		t.Errorf("a row that is to stay for a minimum hold: %v", err)
	}
	for kind, lease := range leases {
		// MySQL picks the rows of a joint lock before, as for a renewal. They stay until they expire.
		if err := lease.Unlock(t.Context()); err != nil && (db.Name != "mysql" || !isOtherLayout(err)) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	must(t, check.Value(young.TryLock(t.Context(), "plain"))(t).Unlock(t.Context()))
	must(t, check.ErrorOf(db.DB.DB.ExecContext(t.Context(), "DELETE FROM INT_LOCK")))
}

// process returns a registry of another process, with its own pool.
func (db pooled) process(t *testing.T) *sqllock.Registry {
	t.Helper()
	pool := db.OpenDSN(t, db.Driver, db.With(t, db.parameters))
	r := check.Value(sqllock.NewRepository(unhurried(t), pool.DB, db.Dialect, &sqllock.RepositoryOptions{TTL: ttl, MultiStatements: db.multiStatements}))(t)
	registry := check.Value(sqllock.NewRegistry(r, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true}))(t)
	t.Cleanup(func() {
		if err := registry.Close(context.Background()); err != nil && !isOtherLayout(err) { // see besideOldProcess
			t.Error(err)
		}
	})
	return registry
}

// isOtherLayout reports whether a user learns from err what to do.
func isOtherLayout(err error) bool {
	return errors.Is(err, sqllock.ErrSchema) && strings.Contains(err.Error(), "restart the process")
}

// leasesOfEachKind acquires.
func leasesOfEachKind(t *testing.T, r *sqllock.Registry) map[string]*sqllock.Lease {
	t.Helper()
	ctx := t.Context()
	permits := check.Value(semaphore.New(r, "permits", 3))(t)
	book := check.Value(rwlock.New(r, "book"))(t)
	diary := check.Value(rwlock.New(r, "diary"))(t)
	return map[string]*sqllock.Lease{
		"a lock":        check.Value(r.TryLock(ctx, "plain"))(t),
		"a joint lock":  check.Value(obtainAll(t, r, "one", "two", "three").TryLock(ctx))(t),
		"two permits":   check.Value(permits.TryAcquire(ctx, 2))(t),
		"a reader":      check.Value(book.TryRLock(ctx))(t),
		"a writer":      check.Value(diary.TryLock(ctx))(t),
		"a leader":      elected(t, r),
		"one that grew": grown(t, r),
	}
}

// grown returns a lease that was renewed.
func grown(t *testing.T, r *sqllock.Registry) *sqllock.Lease {
	t.Helper()
	lease := check.Value(r.TryLock(t.Context(), "grown"))(t)
	must(t, lease.Renew(t.Context()))
	return lease
}

// elected returns the lease of a leader.
func elected(t *testing.T, r *sqllock.Registry) *sqllock.Lease {
	t.Helper()
	elector := check.Value(leader.New(r, "role", nil))(t)
	began := make(chan *sqllock.Lease, 1)
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() {
		_ = elector.Run(ctx, func(ctx context.Context, lease *sqllock.Lease) error {
			began <- lease
			<-ctx.Done()
			return nil
		})
	})
	t.Cleanup(func() { cancel(); running.Wait() })
	return <-began
}

// outlasts checks that the rows of a lease last for longer than the lease, for another process.
func outlasts(t *testing.T, kind string, other *sqllock.Repository, lease *sqllock.Lease) {
	t.Helper()
	found := 0
	for _, row := range check.Value(other.List(t.Context()))(t) {
		if row.Holder != lease.Holder() {
			continue
		}
		found++
		if end := time.Now().Add(row.Left); end.Before(lease.Deadline()) {
			t.Errorf("the row of %s ends %v before its lease", kind, lease.Deadline().Sub(end))
		}
	}
	if found == 0 {
		t.Errorf("no row of %s", kind)
	}
}

// minimumHolds returns how many rows stay for longer than a lease.
func minimumHolds(t *testing.T, r *sqllock.Repository) (n int) {
	t.Helper()
	for _, row := range check.Value(r.List(t.Context()))(t) {
		if row.Kept() && row.Left > 30*time.Minute {
			n++
		}
	}
	return n
}

// acquiresNothing tries alone, in a batch and jointly.
func acquiresNothing(t *testing.T, r *sqllock.Registry) {
	t.Helper()
	var trying sync.WaitGroup
	defer trying.Wait()
	for _, key := range []string{"a", "b", "c", "d", "e", "f"} {
		trying.Go(func() {
			if _, err := r.TryLock(t.Context(), key); !isOtherLayout(err) {
				t.Errorf("acquired in a table of another layout: %v", err)
			}
		})
	}
	if _, err := obtainAll(t, r, "g", "h").TryLock(t.Context()); !isOtherLayout(err) {
		t.Errorf("acquired jointly in a table of another layout: %v", err)
	}
}
