package semaphore_test

import (
	"context"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// TestTwoProcessesContend has the callers of two registries over one file, each with a pool of its own,
// acquire one, two or three permits, until they have done so often enough.
func TestTwoProcessesContend(t *testing.T) {
	t.Parallel()
	const permits, workers, each = 3, 8, 12
	path := filepath.Join(t.TempDir(), "locks.db")
	var inside atomic.Int32
	var working sync.WaitGroup
	for range 2 {
		s := openedSemaphore(t, path, permits)
		for worker := range workers {
			working.Go(func() {
				for i := range each {
					n := 1
					if worker == 0 {
						n = 1 + i%permits
					}
					err := s.Execute(t.Context(), n, func(ctx context.Context) error {
						if all := inside.Add(int32(n)); all > permits { //nolint:gosec // few
							t.Errorf("%d permits are held", all)
						}
						time.Sleep(time.Millisecond) // others try meanwhile
						inside.Add(-int32(n))        //nolint:gosec // as above
						return ctx.Err()
					})
					if err != nil {
						t.Error(err)
					}
				}
			})
		}
	}
	working.Wait()
	s := openedSemaphore(t, path, permits)
	if holders, err := s.Holders(t.Context()); err != nil || len(holders) > 0 {
		t.Errorf("%v, %v", holders, err)
	}
}

// openedSemaphore opens a file as a process does. A lease lasts so long that a slow machine loses
// none.
func openedSemaphore(t *testing.T, path string, permits int) *semaphore.Semaphore {
	t.Helper()
	registry, err := sqlitelock.Open(t.Context(), path, &sqlitelock.Options{Registry: sqllock.RegistryOptions{TTL: 10 * time.Minute}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := registry.Close(context.Background()); err != nil {
			t.Error(err)
		}
	})
	s, err := semaphore.New(registry, key, permits)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
