package sqllock_test

import (
	"context"
	"errors"
	"net/url"
	"os"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/internal/test/wire"
)

// hostOf returns where a server is.
func hostOf(t *testing.T, s *server.Server) string {
	t.Helper()
	dsn, err := url.Parse(s.DSN())
	must(t, err)
	return dsn.Host
}

// The primary is killed, and its synchronous replica becomes the primary behind the same address.
// The sessions of the pools are new there, and serializable; who waits goes on, and tokens rise.
// Before the promotion the replica refuses. It takes seconds to start two servers.
func TestAFailoverOfAnOpenedRegistry(t *testing.T) {
	t.Parallel()
	dbtest.OwnServers(t)
	if !dbtest.All() {
		t.Skip("SKIPPED: make test-all starts a primary and a replica")
	}
	scratch, err := server.NewScratch()
	must(t, err)
	t.Cleanup(func() { must(t, scratch.Remove()) })
	primary, replica, err := server.StartPostgresPair(t.Context(), scratch.Dir)
	if errors.Is(err, server.ErrMissing) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	must(t, err)
	t.Cleanup(func() { must(t, errors.Join(primary.Kill(), replica.Kill())) })

	dsn, err := url.Parse(primary.DSN())
	must(t, err)
	proxy := wire.New(t, dsn.Host)
	dsn.Host = proxy.Addr
	registries := make(map[string]*sqllock.Registry)
	before := make(map[string]*sqllock.Lease)
	for _, o := range []opener{byName(t, "pgxlock"), byName(t, "pqlock")} {
		registries[o.name] = o.opened(t, dsn.String(), openOptions{
			migrate:    true,
			repository: sqllock.RepositoryOptions{Observers: onFallbacks(func(reason error) { t.Errorf("%s: %v", o.name, reason) })},
			registry:   sqllock.RegistryOptions{TTL: never, WaitThroughOutages: true},
		})
		before[o.name], err = registries[o.name].Lock(t.Context(), "held by "+o.name)
		must(t, err)
	}

	must(t, primary.Kill())
	proxy.LeadTo(hostOf(t, replica))
	type result struct {
		name  string
		lease *sqllock.Lease
		err   error
	}
	got := make(chan result)
	for name, registry := range registries {
		go func() {
			lease, err := registry.Lock(context.WithoutCancel(t.Context()), "wanted by "+name)
			got <- result{name, lease, err}
		}()
	}
	for name, registry := range registries { // the replica is reached, and refuses
		awaitThat(t, name+" finds a database that is read-only", func() bool {
			_, err := registry.TryLock(t.Context(), "refused to "+name)
			if err == nil {
				t.Fatal("acquired in a replica")
			}
			return errors.Is(err, sqllock.ErrReadOnly)
		})
	}
	for _, o := range []opener{byName(t, "pgxlock"), byName(t, "pqlock")} {
		for _, isolation := range []sqllock.Isolation{sqllock.Serializable, sqllock.ReadCommitted} {
			_, err := o.open(t.Context(), dsn.String(), openOptions{repository: sqllock.RepositoryOptions{Isolation: isolation}})
			if !errors.Is(err, sqllock.ErrReadOnly) {
				t.Errorf("%s.Open of a replica, %v: %v", o.name, isolation, err)
			}
		}
	}
	must(t, replica.Promote(t.Context()))
	for range registries {
		r := <-got
		must(t, r.err)
		if r.lease.Token() <= before[r.name].Token() {
			t.Errorf("%s: token %d after %d", r.name, r.lease.Token(), before[r.name].Token())
		}
		must(t, r.lease.Unlock(t.Context()))
		must(t, before[r.name].Renew(t.Context()))
		must(t, before[r.name].Unlock(t.Context()))
	}
}
