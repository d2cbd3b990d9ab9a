package servers_test

import (
	"context"
	"errors"
	"path/filepath"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/migrations"
)

// Pgpool-II sends what it takes for a mere read to a standby, which is stopped at an older state here. Whatever a lock
// depends on must not be read there.
func TestPgpool_NothingIsReadFromTheStandby(t *testing.T) {
	t.Parallel()
	dbtest.OwnServers(t)
	scratch := check.Value(server.NewScratch())(t)
	t.Cleanup(func() { must(t, scratch.Remove()) })
	pool, onPrimary, onStandby, err := server.StartPgpool(t.Context(), filepath.Join(scratch.Dir, "pgpool"))
	if errors.Is(err, server.ErrMissing) && !check.Value(server.Required(server.Pgpool))(t) {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, pool.Stop()) })
	on := func(s *server.Server) *dbtest.DB {
		db := &dbtest.DB{Server: server.Postgres, Name: "postgres", Driver: "postgres", DSN: s.DSN(), Dialect: dialect.Postgres()}
		db.DB = db.Open(t)
		return db
	}
	primary, standby, db := on(onPrimary), on(onStandby), on(pool)
	must(t, migrations.Up(t.Context(), primary.DB.DB, primary.Dialect, nil))
	answers := func(db *dbtest.DB, question string) func() bool {
		return func() (yes bool) {
			must(t, db.DB.GetContext(t.Context(), &yes, question))
			return yes
		}
	}
	awaitThat(t, "the standby has the tables", answers(standby, "SELECT to_regclass('int_lock_name') IS NOT NULL"))
	standby.DB.MustExec("SELECT pg_wal_replay_pause()")
	awaitThat(t, "Pgpool-II balances reads", answers(db, "SELECT current_setting('transaction_read_only') = 'on'"))

	for _, o := range []string{"pgxlock", "pqlock"} {
		t.Run(o, func(t *testing.T) {
			t.Parallel()
			first, second := byName(t, o).opened(t, db.DSN, quiet), byName(t, o).opened(t, db.DSN, quiet)
			var token int64
			for range 5 {
				for _, r := range []*sqllock.Registry{first, second} {
					lease := check.Value(obtain(t, r, o).TryLock(t.Context()))(t)
					if lease.Token() <= token {
						t.Errorf("token %d after %d", lease.Token(), token)
					}
					token = lease.Token()
					other := first
					if r == first {
						other = second
					}
					if _, err := obtain(t, other, o).TryLock(t.Context()); !errors.Is(err, sqllock.ErrNotAcquired) {
						t.Errorf("beside a holder: %v", err)
					}
					waiting := check.Begin(func() error {
						return other.ExecuteLocked(t.Context(), o, func(context.Context) error { return nil })
					})
					must(t, lease.Renew(t.Context()))
					must(t, lease.Unlock(t.Context()))
					must(t, <-waiting)
				}
			}
		})
	}
}
