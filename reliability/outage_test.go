//go:build linux

package reliability

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest/server"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/observe"
)

// An outage is a temporary failure of a server.
type outage struct {
	name       string
	begin, end func(*server.Server) error
}

const paused = "paused (SIGSTOP)"

var outages = []outage{
	{"killed (-9)", (*server.Server).Kill, restart},
	{"stopped", (*server.Server).Stop, restart},
	{paused, (*server.Server).Pause, (*server.Server).Resume},
}

func restart(s *server.Server) error { return s.Restart(context.Background()) }

// TestOutage makes a server unavailable for some time. If the outage is shorter than the rest of
// the lease, the heartbeat must renew the lease; otherwise the lease must end in time.
func TestOutage(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "outage", "database, driver", "server", "leases, longer outage", "two holders",
		"shortest", "median", "longest", "leases, short outage", "kept")
	each(t, servers, func(t *testing.T, place int, c cell) {
		b, s := c.newServer(t)
		for i, o := range outages {
			n := size(2, 20)
			all := b.longOutage(t, s, o, n)
			kept := b.shortOutage(t, s, o, n)
			least, median, greatest := spread(all.gaps)
			figures.add(len(outages)*place+i, c.name, o.name, n, all.negative, least, median, greatest, n, kept)
		}
	})
}

// newServer starts a durable server for the test. A server that loses its last commits in a
// crash would release locks too early.
func (c cell) newServer(t *testing.T) (*base, *server.Server) {
	t.Helper()
	s, err := c.durable(t.Context(), filepath.Join(scratch(t), "server"))
	started(t, err, s)
	return c.migrated(t, s.DSN()), s
}

// migrated returns the base on a server that was started for the test.
func (c cell) migrated(t *testing.T, dsn string) *base {
	t.Helper()
	b := &base{c, dsn, open(t, c.driver, dsn, 20)}
	must(t, migrations.Up(t.Context(), b.db.DB, c.dialect(), nil))
	return b
}

func scratch(t *testing.T) string {
	t.Helper()
	s, err := server.NewScratch()
	must(t, err)
	t.Cleanup(func() { must(t, s.Remove()) })
	return s.Dir
}

// started stops the servers when the test ends. It skips the test if there is no such server.
func started(t *testing.T, err error, all ...*server.Server) {
	t.Helper()
	if (errors.Is(err, server.ErrMissing) || errors.Is(err, errors.ErrUnsupported)) && os.Getenv("CI") != "true" {
		t.Skip(err)
	}
	must(t, err)
	for _, s := range all {
		t.Cleanup(func() { _ = s.Kill() })
	}
}

// fresh returns a new pool, whose connections were not broken by an outage.
func (b *base) fresh(t *testing.T) *sqlx.DB {
	t.Helper()
	return open(t, b.driver, b.dsn, 4)
}

// longOutage begins at a random time of each holder's heartbeat and lasts until all leases have
// ended.
func (b *base) longOutage(t *testing.T, s *server.Server, o outage, n int) *outcome {
	t.Helper()
	const ttl = blackHoleTTL
	leases, ended, won := make([]*sqllock.Lease, n), make([]<-chan time.Time, n), make([]<-chan win, n)
	for i := range n {
		key := fmt.Sprint(o.name, i)
		leases[i] = acquire(t, b.renewing(t, b.fresh(t), ttl), key)
		ended[i] = awaitEnd(leases[i])
		won[i] = rival(t, b.registry(t, b.fresh(t), sqllock.RegistryOptions{TTL: ttl}), ttl, key)
		pause(t.Context(), rand.N(ttl/time.Duration(n)))
	}
	must(t, o.begin(s))
	at, all := make([]time.Time, n), new(outcome)
	for i, lease := range leases {
		at[i] = <-ended[i]
		lost(t, "cause", context.Cause(lease.Context()))
		lost(t, "Renew", lease.Renew(t.Context()))
		lost(t, "Unlock", lease.Unlock(t.Context()))
	}
	back := time.Now()
	must(t, o.end(s))
	for i, lease := range leases {
		w := <-won[i]
		if w.sent.Before(back) { // on a slow machine a query can outlast the outage
			w.sent = back // the server cannot have responded before
		}
		b.settle(t, lease, at[i], w)
		all.add(w.sent.Sub(at[i]), false)
	}
	return all
}

// shortOutage begins immediately and ends as soon as the server is up again. It returns how many
// leases were kept. All must be kept, unless the outage took most of the time-to-live.
func (b *base) shortOutage(t *testing.T, s *server.Server, o outage, n int) (kept int) {
	t.Helper()
	withTTL(t, 6*time.Second, func(ttl time.Duration) (longEnough bool) {
		kept, longEnough = b.keptOverOutage(t, s, o, n, ttl)
		return longEnough
	})
	return kept
}

// keptOverOutage is false if leases were lost although the outage was short for their time-to-live.
func (b *base) keptOverOutage(t *testing.T, s *server.Server, o outage, n int, ttl time.Duration) (kept int, longEnough bool) {
	t.Helper()
	leases, renewed := make([]*sqllock.Lease, n), make([]chan struct{}, n)
	var over atomic.Bool
	for i := range n {
		renewed[i] = make(chan struct{}, 1)
		r := b.registry(t, b.fresh(t), sqllock.RegistryOptions{
			TTL: ttl, AutoRenew: true, Observers: []*observe.Observer{{Renewal: func(_ context.Context, e observe.Renewal) {
				if e.Err == nil && over.Load() {
					select {
					case renewed[i] <- struct{}{}:
					default:
					}
				}
			}}},
		})
		leases[i] = acquire(t, r, fmt.Sprint(o.name, i, ttl))
	}
	began := time.Now()
	must(t, o.begin(s))
	if o.name == paused {
		pause(t.Context(), ttl/3) // a server that was killed takes a while to start
	}
	over.Store(true)
	must(t, o.end(s))
	took := time.Since(began)
	longEnough = true
	for i, lease := range leases {
		select {
		case <-renewed[i]:
		case <-lease.Context().Done():
		}
		switch err := lease.Unlock(t.Context()); {
		case err == nil:
			kept++
		case took < ttl/2:
			t.Logf("an outage of %v: %v", took, err)
			longEnough = false
		}
	}
	return kept, longEnough
}
