package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// semaphore returns the semaphore of the process, or nil. Some processes know of fewer permits.
func (k *worker) semaphore() *semaphore.Semaphore {
	all := &k.seats
	all.mu.Lock()
	defer all.mu.Unlock()
	if all.permits == nil && k.world.plan.Permits > 0 {
		permits := k.world.plan.Permits
		if permits > 1 && k.process.random.chance(0.2) {
			permits--
		}
		var err error
		all.permits, err = semaphore.New(k.registry, semaphoreKey, permits)
		k.expect("semaphore.New", err, sqllock.ErrCapacity)
	}
	return all.permits
}

// actWithPermits does one thing that a caller may do with a semaphore.
func (k *worker) actWithPermits(ctx context.Context) {
	s := k.semaphore()
	if s == nil {
		return
	}
	if k.random.chance(0.1) {
		s = s.WithAutoRenew(k.random.chance(0.5))
	}
	n := 1
	if k.random.chance(0.4) {
		n += k.random.intN(s.Permits())
	}
	switch d := k.random.intN(100); {
	case d < 50:
		k.permits("TryAcquireFor", n, k.random.upTo(longestWait)).call(ctx, k.acquires(s, n))
	case d < 70:
		k.permits("TryAcquire", n, 0).call(ctx, k.acquires(s, n))
	case d < 90:
		k.permits("ExecuteFor", n, k.random.upTo(longestWait)).execute(ctx,
			func(ctx context.Context, wait time.Duration, fn func(context.Context) error) error {
				return s.ExecuteFor(ctx, n, wait, fn)
			})
	default:
		k.world.deleteSeat(k, k.world.permitKeys())
		began := time.Now()
		_, err := s.Holders(ctx)
		if ctx.Err() == nil {
			k.expect("Holders", err, sqllock.ErrDatabase)
		}
		k.timely("Holders", began, k.longestSeating(&attempt{call: &call{began: began}}))
	}
}

func (k *worker) permits(name string, n int, wait time.Duration) seating {
	return seating{k, fmt.Sprintf("%s %d", name, n), k.world.permitKeys(), wait, nil}
}

// acquires returns the call that acquires n permits, which must be permits that there are.
func (k *worker) acquires(s *semaphore.Semaphore, n int) func(context.Context, time.Duration) (*sqllock.Lease, error) {
	return func(ctx context.Context, wait time.Duration) (*sqllock.Lease, error) {
		lease, err := s.TryAcquireFor(ctx, n, wait)
		if err != nil {
			return nil, err
		}
		keys := slices.Compact(slices.Sorted(slices.Values(lease.Keys())))
		other := slices.DeleteFunc(slices.Clone(keys), func(key string) bool {
			return slices.Contains(k.world.permitKeys()[:s.Permits()], key)
		})
		if len(keys) != n || len(other) > 0 {
			k.world.violated("permits", "%s: %d of %d permits were acquired, and got were %v", k.name, n, s.Permits(), keys)
		}
		return lease, nil
	}
}

// deleteSeat deletes one of keys by force that has a row.
func (w *World) deleteSeat(k *worker, keys []string) {
	if !w.plan.Can(Deletion) || w.isCalm() {
		return
	}
	keys = w.witness.withRows(keys)
	if len(keys) > 0 {
		w.deleteByForce(keys[k.random.intN(len(keys))])
	}
}

// withRows returns those of keys that have a row.
func (w *witness) withRows(keys []string) (with []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		if w.rows[key].holder != "" {
			with = append(with, key)
		}
	}
	return with
}
