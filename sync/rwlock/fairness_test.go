package rwlock_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/rwlock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

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
			runInBubble(t, fmt.Sprintf("%s, %v", what, interval), func(f *fixture) {
				process := func() acquire {
					acquire, err := acquireOf(f.processWith(sqllock.RegistryOptions{
						TTL: time.Minute, AutoRenew: true, IdleBetweenTries: interval, HandOff: true,
					}).registry)
					f.Must(err)
					return acquire
				}
				longest := f.waitsBeside(process(), process(), interval/4)
				f.Logf("waited for %v", longest)
				if limit := 13 * interval; longest > limit { // ten, the hold and two polls
					f.Errorf("waited for %v, more than %v", longest, limit)
				}
			})
		}
	}
}

// waitsBeside returns the longest of some waits with acquire, while callers of another process hold the lock
// all the time with busy, for hold each.
func (f *fixture) waitsBeside(busy, acquire acquire, hold time.Duration) (longest time.Duration) {
	var callers sync.WaitGroup
	defer callers.Wait()
	ctx, stop := context.WithCancel(f.Context())
	defer stop()
	for range 4 {
		callers.Go(func() {
			for ctx.Err() == nil {
				if lease, err := busy(ctx); err == nil {
					time.Sleep(hold)
					f.Unlock(lease) //nolint:contextcheck // ctx may have ended
				}
			}
		})
	}
	time.Sleep(10 * hold)
	for range 6 {
		began := time.Now()
		lease, err := acquire(f.Context())
		f.Must(err)
		longest = max(longest, time.Since(began))
		time.Sleep(hold)
		f.Unlock(lease)
		time.Sleep(hold)
	}
	return longest
}
