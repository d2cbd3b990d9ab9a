package sqllock_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// The synchronous standby does not answer, and the wait of a COMMIT is cancelled: PostgreSQL answers with success and a
// warning. A failover would lose the row, and give the lock and its token out again. So it is not acquired, nor renewed.
// It takes a server of its own.
func TestWhatIsNotReplicatedIsNotAcquired(t *testing.T) {
	t.Parallel()
	s, admin := watchedServers["postgres"].run(t)
	dsn := s.DSN() + "&synchronous_commit=on"
	leases := make(map[*sqllock.Registry]*sqllock.Lease)
	for _, o := range []opener{byName(t, "pgxlock"), byName(t, "pqlock")} {
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.ReadCommitted, sqllock.Autocommit} {
			r := o.opened(t, dsn, openOptions{repository: sqllock.RepositoryOptions{Isolation: isolation}, registry: sqllock.RegistryOptions{TTL: never}})
			var err error
			leases[r], err = r.Lock(t.Context(), o.name+isolation.String())
			must(t, err)
		}
	}
	admin.SetMaxOpenConns(1) // whose commits do not wait: the server has synchronous_commit=off
	for _, text := range []string{"ALTER SYSTEM SET synchronous_standby_names = 'away'", "SELECT pg_reload_conf()"} {
		_, err := admin.ExecContext(t.Context(), text)
		must(t, err)
	}
	for names := ""; names != "away"; time.Sleep(time.Millisecond) {
		must(t, admin.GetContext(t.Context(), &names, "SHOW synchronous_standby_names"))
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancelled := make(chan struct{})
	go func() {
		defer close(cancelled)
		for ctx.Err() == nil {
			_, _ = admin.ExecContext(ctx, "SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
			time.Sleep(time.Millisecond)
		}
	}()
	for r, lease := range leases {
		name := lease.Key()
		if _, err := r.TryLock(t.Context(), "free "+name); !errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("%s: TryLock: %v", name, err)
		}
		if joint, err := r.ObtainAll("a"+name, "b"+name); err != nil {
			t.Error(err)
		} else if _, err := joint.TryLock(t.Context()); !errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("%s: TryLock of two keys: %v", name, err)
		}
		if err := lease.Renew(t.Context()); !errors.Is(err, sqllock.ErrDatabase) {
			t.Errorf("%s: Renew: %v", name, err)
		}
		rows, err := r.Repository().List(t.Context())
		must(t, err)
		if len(rows) != len(leases) {
			t.Errorf("%s: %d rows, want %d", name, len(rows), len(leases))
		}
	}
	cancel()
	<-cancelled
	for _, text := range []string{"ALTER SYSTEM RESET synchronous_standby_names", "SELECT pg_reload_conf()"} {
		_, err := admin.ExecContext(t.Context(), text)
		must(t, err)
	}
}
