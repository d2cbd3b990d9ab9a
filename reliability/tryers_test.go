//go:build linux

package reliability

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/observe"
)

// tryLatency is the additional latency of the tryers' connections, in milliseconds.
const tryLatency = 1

// TestRenewalBesideTryers runs processes that repeatedly try to acquire a held lock, over a
// network with a higher latency. A refused acquire statement locks the row until its
// transaction ends, and a heartbeat skips locked rows. The lease must be kept nevertheless.
// Each process has a pool of its own.
func TestRenewalBesideTryers(t *testing.T) {
	inParallel(t)
	load := tryers{ttl: 6 * time.Second, lasts: 2, runs: 1, processes: 15, pause: 30 * time.Millisecond}
	if *full {
		load = tryers{ttl: 1500 * time.Millisecond, lasts: 40, runs: 20, processes: 50, pause: 100 * time.Millisecond}
	}
	figures := newTable(t, "tryers", "database, driver", "time-to-live", "processes", "a try every", "runs", "kept", "tries refused",
		"renewals", "of these reported as pinned")
	each(t, servers, func(t *testing.T, place int, c cell) {
		b := c.newBase(t)
		var seen pollings
		for run := range load.runs {
			withTTL(t, load.ttl, func(ttl time.Duration) (kept bool) {
				key := fmt.Sprint("run ", run, " ", ttl)
				t.Run(key, func(t *testing.T) { kept = b.besideTryers(t, load, ttl, key, &seen) }) // its pools are closed at its end
				return kept
			})
		}
		if seen.refused.Load() == 0 {
			t.Error("nobody has tried")
		}
		figures.add(place, c.name, load.ttl, load.processes, load.pause, fmt.Sprintf("%d of %v", load.runs, time.Duration(load.lasts)*load.ttl),
			seen.kept, seen.refused.Load(), seen.renewals.Load(), seen.pinned.Load())
	})
}

// tryers are processes that repeatedly try to acquire a lock while its lease lasts.
type tryers struct {
	ttl, pause      time.Duration
	lasts           int // times the time-to-live
	runs, processes int
}

// pollings are the results: of the tryers and of the lease.
type pollings struct {
	kept                      int
	refused, renewals, pinned atomic.Int64
}

// tryOnce tries to acquire a lock with a new registry, as a new process does: a registry that
// has found the lock taken would read the row before it tries again.
func tryOnce(ctx context.Context, r *sqllock.Repository, ttl time.Duration, key string) error {
	registry, err := sqllock.NewRegistry(r, &sqllock.RegistryOptions{TTL: ttl})
	if err != nil {
		return err
	}
	lock, err := registry.Obtain(key)
	if err == nil {
		_, err = lock.TryLock(ctx)
	}
	return errors.Join(err, registry.Close(context.WithoutCancel(ctx)))
}

// besideTryers reports whether a lease with AutoRenew lasts as long as it should.
func (b *base) besideTryers(t *testing.T, load tryers, ttl time.Duration, key string, seen *pollings) (kept bool) {
	t.Helper()
	holder := b.registry(t, open(t, b.driver, b.dsn, 2), sqllock.RegistryOptions{
		TTL: ttl, AutoRenew: true, Observers: []*observe.Observer{{Renewal: func(_ context.Context, e observe.Renewal) {
			seen.renewals.Add(1)
			if errors.Is(e.Err, sqllock.ErrPinned) {
				seen.pinned.Add(1)
			}
		}}},
	})
	lease := acquire(t, holder, key)
	began := time.Now()
	n := newNetwork(t, b)
	n.delayAnswers(tryLatency)
	ctx, cancel := context.WithTimeout(lease.Context(), time.Duration(load.lasts)*ttl)
	defer cancel()
	var trying sync.WaitGroup
	for i := range load.processes {
		r := b.repository(t, open(t, b.driver, n.dsn, 1))
		trying.Go(func() {
			pause(ctx, load.pause*time.Duration(i)/time.Duration(load.processes))
			for ctx.Err() == nil {
				began := time.Now()
				switch err := tryOnce(ctx, r, ttl, key); {
				case errors.Is(err, sqllock.ErrNotAcquired):
					seen.refused.Add(1)
				case err == nil && lease.Context().Err() == nil:
					t.Error("a second holder")
					return
				case err == nil:
					return // the lease was lost before
				case noAnswer(err) && watch.StoodStill(began, time.Now()) > time.Second:
					t.Logf("the machine stood still: %v", err)
				case ctx.Err() == nil:
					t.Error(err)
				}
				pause(ctx, load.pause)
			}
		})
	}
	trying.Wait()
	if err := lease.Context().Err(); err != nil {
		t.Logf("%s: lost after %v: %v", key, time.Since(began), context.Cause(lease.Context()))
		return false
	}
	seen.kept++
	must(t, lease.Unlock(t.Context()))
	return true
}
