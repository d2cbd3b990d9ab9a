//go:build linux

package reliability

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
)

const (
	poolLeases = 50
	poolSize   = 5
)

// poolTTL is the time-to-live with which a trial begins.
func poolTTL() time.Duration {
	if *full {
		return 3 * time.Second
	}
	return 6 * time.Second
}

// TestPool lets an application use all connections of its pool for several times-to-live. All
// leases that are renewed over a small pool of sqllock's own must be kept. Leases that share
// the application's pool are lost, which is safe: all of them must end in time.
func TestPool(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "pool", "database, driver", "sqllock's pool", "leases", "kept", "lost", "two holders",
		"shortest", "median", "longest")
	each(t, servers, func(t *testing.T, place int, c cell) {
		b := c.newBase(t)
		t.Run("its own", func(t *testing.T) {
			t.Parallel()
			var kept int
			withTTL(t, poolTTL(), func(ttl time.Duration) bool {
				app := open(t, b.driver, b.dsn, poolSize)
				kept = b.exhausted(t, app, open(t, b.driver, b.dsn, 2), fmt.Sprint("own", ttl), ttl).kept(t)
				return kept == poolLeases
			})
			figures.add(2*place, c.name, "2 connections of its own", poolLeases, kept, poolLeases-kept, 0, "", "", "")
		})
		t.Run("shared", func(t *testing.T) {
			t.Parallel()
			app := open(t, b.driver, b.dsn, poolSize)
			held := b.exhausted(t, app, app, "shared", poolTTL())
			all := held.lostInTime(t)
			least, median, greatest := spread(all.gaps)
			figures.add(2*place+1, c.name, fmt.Sprintf("the application's %d, in use", poolSize), poolLeases,
				poolLeases-len(all.gaps), len(all.gaps), all.negative, least, median, greatest)
		})
	})
}

// An exhausted application holds leases and all connections of its pool.
type exhausted struct {
	*base
	ttl    time.Duration
	leases []*sqllock.Lease
	ended  []<-chan time.Time
	won    []<-chan win
}

// exhausted acquires leases, and then all connections of the application.
func (b *base) exhausted(t *testing.T, app, locks *sqlx.DB, prefix string, ttl time.Duration) *exhausted {
	t.Helper()
	r := b.renewing(t, locks, ttl)
	rivals := b.registry(t, open(t, b.driver, b.dsn, 10), sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: time.Second})
	e := &exhausted{base: b, ttl: ttl}
	for i := range poolLeases {
		lease := acquire(t, r, fmt.Sprint(prefix, i))
		e.leases = append(e.leases, lease)
		e.ended = append(e.ended, awaitEnd(lease))
		e.won = append(e.won, rival(t, rivals, ttl, lease.Key()))
	}
	for range poolSize {
		conn, err := app.Connx(t.Context())
		must(t, err)
		t.Cleanup(func() { _ = conn.Close() })
	}
	return e
}

// kept returns how many leases last for several times-to-live.
func (e *exhausted) kept(t *testing.T) (kept int) {
	t.Helper()
	pause(t.Context(), 3*e.ttl)
	for _, lease := range e.leases {
		if lease.Context().Err() == nil {
			kept++
		}
		_ = lease.Unlock(t.Context()) // the others wait for this one
	}
	for _, won := range e.won {
		w := <-won
		_ = w.lease.Unlock(t.Context()) // the other lease is lost
	}
	return kept
}

// lostInTime waits until each lease is lost.
func (e *exhausted) lostInTime(t *testing.T) *outcome {
	t.Helper()
	all := new(outcome)
	for i, lease := range e.leases {
		at := <-e.ended[i]
		lost(t, "cause", context.Cause(lease.Context()))
		w := <-e.won[i]
		e.settle(t, lease, at, w)
		all.add(w.sent.Sub(at), false)
	}
	return all
}
