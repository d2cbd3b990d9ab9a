package servers_test

import (
	"context"
	"path/filepath"
	"testing"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
)

// Where MySQL Router lets clients share sessions, it refuses several statements in a message, and everything works without.
func TestRouter_ClientsShareSessions(t *testing.T) {
	t.Parallel()
	db := up(t, dbtest.OracleMySQL)
	scratch := check.Value(server.NewScratch())(t)
	t.Cleanup(func() { must(t, scratch.Remove()) })
	router := check.Value(server.StartMySQLRouter(t.Context(), filepath.Join(scratch.Dir, "router"), db.DSN))(t)
	t.Cleanup(func() { must(t, router.Stop()) })

	through := &dbtest.DB{Driver: db.Driver, DSN: router.DSN()}
	clients := []*sqlx.DB{through.Open(t), through.Open(t)}
	awaitThat(t, "two clients share a session", func() bool {
		var of [2]int64
		for i, client := range clients {
			must(t, client.GetContext(t.Context(), &of[i], "SELECT CONNECTION_ID() + 0"))
		}
		return of[0] == of[1]
	})

	opened := func(fair bool) *sqllock.Registry {
		options := sqllock.RepositoryOptions{Observers: onFallbacks(func(reason error) { t.Log(reason) })} // where both connections of Open share a session
		return (&opener{"mysqllock", nil, openMySQL}).opened(t, through.DSN, openOptions{wake: true, repository: options, registry: sqllock.RegistryOptions{Fair: fair}})
	}
	for _, fair := range []bool{false, true} {
		one, other := opened(fair), opened(fair)
		var token int64
		for range 5 {
			for _, processes := range [][2]*sqllock.Registry{{one, other}, {other, one}} {
				lease := check.Value(processes[0].Lock(t.Context(), "k"))(t)
				if lease.Token() <= token {
					t.Errorf("token %d after %d", lease.Token(), token)
				}
				token = lease.Token()
				is(t, check.ErrorOf(processes[1].TryLock(t.Context(), "k")), sqllock.ErrNotAcquired)
				waiting := check.Begin(func() error {
					return processes[1].ExecuteLocked(t.Context(), "k", func(context.Context) error { return nil })
				})
				must(t, lease.Renew(t.Context()))
				tx := check.Value(db.DB.BeginTx(t.Context(), nil))(t)
				must(t, lease.Guard(t.Context(), tx))
				must(t, tx.Commit())
				must(t, lease.Unlock(t.Context()))
				must(t, <-waiting)
			}
		}
	}
}
