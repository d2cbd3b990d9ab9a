//go:build linux

package clusters

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/mysqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/migrations"
)

// acquiresForOne has two nodes acquire the same keys at the same time, by statements that are
// transactions of their own. The node that fails certification repeats such a statement
// (wsrep_retry_autocommit), and returns the rows of both runs. In a first version both callers had the
// lock, for about each second key.
func acquiresForOne(t *testing.T, nodes ...string) {
	t.Helper()
	const prefix, keys = "ONE_", 100
	must(t, migrations.Up(t.Context(), open(t, nodes[0]).DB, dialect.MySQL(), &migrations.Options{Prefix: prefix}))
	for name, way := range map[string]struct {
		dialect dialect.Dialect
		layout  dialect.Layout
	}{
		"asks what the server is":   {dialect: dialect.MySQL()},
		"thinks that it is no node": {dialect.MySQL().WithSequence(), dialect.Spring7},
	} {
		t.Run(name, func(t *testing.T) {
			var repositories []*sqllock.Repository
			for caller := range 4 {
				pool := open(t, nodes[caller%len(nodes)]+"")
				r := check.Value(sqllock.NewRepository(t.Context(), pool.DB, way.dialect, &sqllock.RepositoryOptions{
					Prefix: prefix, Region: name, Layout: way.layout, DisableFencing: true, Isolation: sqllock.Autocommit,
				}))(t)
				repositories = append(repositories, r)
			}
			for key := range keys {
				var acquired atomic.Int32
				var trying sync.WaitGroup
				for _, r := range repositories {
					trying.Go(func() {
						got, err := r.Acquire(t.Context(), fmt.Sprint(key), r.NewHolder(), time.Minute)
						check.Is(t, err, nil)
						if got.Acquired {
							acquired.Add(1)
						}
					})
				}
				trying.Wait()
				if n := acquired.Load(); n > 1 {
					final.Store(true)
					t.Errorf("key %d has %d holders", key, n)
				}
			}
		})
	}
}

// locksOverOpen has processes lock in turns over the pools that Open makes, each over one node. In a first version these sent
// a transaction as one message: of 5 400 acquisitions three were of a lock that another process had.
func locksOverOpen(t *testing.T, nodes ...string) {
	t.Helper()
	const enough = 6000
	var locked, inside atomic.Int32
	var locking sync.WaitGroup
	options := &mysqllock.Options{Registry: sqllock.RegistryOptions{TTL: longTTL, IdleBetweenTries: 20 * time.Millisecond}, Migrate: migrations.Up}
	for _, dsn := range slices.Repeat(nodes, 2) {
		registry := check.Value(mysqllock.Open(t.Context(), dsn, options))(t)
		t.Cleanup(func() { check.Is(t, registry.Close(context.WithoutCancel(t.Context())), nil) })
		locking.Go(func() {
			for locked.Add(1) < enough {
				lease, err := registry.Lock(t.Context(), "over Open")
				if err != nil {
					t.Error(err)
					return
				}
				if inside.Add(1) > 1 {
					final.Store(true)
					t.Errorf("token %d: two holders", lease.Token())
				}
				inside.Add(-1)
				check.Is(t, lease.Unlock(t.Context()), nil)
			}
		})
	}
	locking.Wait()
}
