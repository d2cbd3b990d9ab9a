package sqllock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// TestProcessesWithManyCallersShareALock lets two crowds that both hand the row on among themselves
// compete for one key, as two processes would. Neither may starve the other.
func TestProcessesWithManyCallersShareALock(t *testing.T) {
	const (
		callers = 30
		each    = 10 * time.Second
		fair    = 0.35 // the smaller share of two, at least
	)
	db := dbtest.Postgres(t)
	must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
	ctx, cancel := context.WithTimeout(t.Context(), each)
	defer cancel()
	var working sync.WaitGroup
	var shares [2]atomic.Int64
	var inside atomic.Int64
	for i := range shares {
		registry := manyCallers(t, db)
		for range callers {
			working.Go(func() {
				for {
					err := registry.ExecuteLocked(ctx, "k", func(context.Context) error {
						if inside.Add(1) != 1 {
							t.Error("two holders")
						}
						shares[i].Add(1)
						inside.Add(-1)
						return nil
					})
					if errors.Is(err, context.DeadlineExceeded) {
						return
					}
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
	}
	working.Wait()
	first, second := float64(shares[0].Load()), float64(shares[1].Load())
	t.Logf("%.0f and %.0f", first, second)
	if min(first, second) < fair*(first+second) {
		t.Errorf("%.0f and %.0f: the smaller share is less than %v", first, second, fair)
	}
}

// manyCallers returns the registry of a process with a pool of its own.
func manyCallers(t *testing.T, db *dbtest.DB) *sqllock.Registry {
	t.Helper()
	pool := db.OpenDSN(t, db.Driver, db.DSN)
	pool.SetMaxOpenConns(2)
	repository, err := sqllock.NewRepository(t.Context(), pool, db.Dialect, nil)
	must(t, err)
	return newRegistry(t, repository, &sqllock.RegistryOptions{HandOff: true})
}
