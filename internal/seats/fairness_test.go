package seats_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

func TestMain(m *testing.M) { testmain.Run(m) }

type acquire func(context.Context) (*sqllock.Lease, error)

// TestWaitsBesideABusyProcess has a caller wait beside a process whose callers have the lock one after the
// other: for a plain lock that is handed over, a permit, and a write lock. The waits are in proportion to
// the interval at which the caller polls.
func TestWaitsBesideABusyProcess(t *testing.T) {
	t.Parallel()
	for what, acquireOf := range map[string]func(*sqllock.Registry) (acquire, error){
		"plain": func(r *sqllock.Registry) (acquire, error) {
			lock, err := r.Obtain("k")
			return lock.Lock, err
		},
		"permit": func(r *sqllock.Registry) (acquire, error) {
			s, err := semaphore.New(r, "k", 1)
			return func(ctx context.Context) (*sqllock.Lease, error) { return s.Acquire(ctx, 1) }, err
		},
		"writer": func(r *sqllock.Registry) (acquire, error) {
			l, err := rwlock.New(r, "k")
			return l.Lock, err
		},
	} {
		for _, interval := range []time.Duration{25 * time.Millisecond, 100 * time.Millisecond, time.Second, 3 * time.Second} {
			t.Run(fmt.Sprintf("%s, %v", what, interval), func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					db := virtual.Migrated(t, dialect.Spring7)
					process := func() acquire {
						repository, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, nil)
						must(t, err)
						registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
							TTL: time.Minute, AutoRenew: true, IdleBetweenTries: interval, HandOff: true,
						})
						must(t, err)
						t.Cleanup(func() { must(t, registry.Close(context.Background())) })
						acquire, err := acquireOf(registry)
						must(t, err)
						return acquire
					}
					longest := waitsBeside(t, process(), process(), interval/4)
					t.Logf("waited for %v", longest)
					if limit := 13 * interval; longest > limit { // ten, the hold and two polls
						t.Errorf("waited for %v, more than %v", longest, limit)
					}
				})
			})
		}
	}
}

// waitsBeside returns the longest of some waits with acquire, while callers of another process hold the lock
// all the time with busy, for hold each.
func waitsBeside(t *testing.T, busy, acquire acquire, hold time.Duration) (longest time.Duration) {
	var callers sync.WaitGroup
	defer callers.Wait()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				if lease, err := busy(ctx); err == nil {
					time.Sleep(hold)
					must(t, lease.Unlock(t.Context())) //nolint:contextcheck // ctx may have ended
				}
			}
		})
	}
	time.Sleep(10 * hold)
	for range 6 {
		began := time.Now()
		lease, err := acquire(t.Context())
		must(t, err)
		longest = max(longest, time.Since(began))
		time.Sleep(hold)
		must(t, lease.Unlock(t.Context()))
		time.Sleep(hold)
	}
	return longest
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}
