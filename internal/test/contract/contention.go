package contract

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/sqllock/sqllock"
)

// contentionTests are about many callers that want a lock at the same time.
var contentionTests = []test{
	inEachCell("ACounterLosesNoUpdate", func(f *fixture) {
		const processes, callers, rounds = 3, 3, 5
		var counter, inside int
		f.concurrently(processes, callers, func(r *sqllock.Registry) error {
			for range rounds {
				err := r.ExecuteLocked(f.Context(), "k", func(context.Context) error {
					if inside++; inside != 1 {
						return errors.New("two holders")
					}
					counter++
					inside--
					return nil
				})
				if err != nil {
					return err
				}
			}
			return nil
		})
		equal(f, "counter", counter, processes*callers*rounds)
	}),
	inEachCell("OfTwentyTriesExactlyOneSucceeds", func(f *fixture) {
		for round := range 3 {
			var winners atomic.Int64
			f.concurrently(20, 1, func(r *sqllock.Registry) error {
				lock, err := r.Obtain(fmt.Sprint(round))
				if err != nil {
					return err
				}
				_, err = lock.TryLock(f.Context())
				switch {
				case err == nil:
					winners.Add(1)
				case !errors.Is(err, sqllock.ErrNotAcquired):
					return err
				}
				return nil
			})
			equal(f, "winners", winners.Load(), 1)
		}
	}),
	inEachCell("AFreeLockIsAcquiredAtTheFirstTry", func(f *fixture) {
		l := f.lock(ttl)
		for range 10 {
			f.must(f.acquire(l).Unlock(f.Context()))
		}
	}),
}

// concurrently runs do in several goroutines of each of several processes, all at the same time.
func (f *fixture) concurrently(processes, callers int, do func(*sqllock.Registry) error) {
	f.Helper()
	registries := make([]*sqllock.Registry, processes)
	for i := range registries {
		registries[i] = f.registry(ttl)
	}
	f.inGoroutines(processes*callers, func(i int) error { return do(registries[i%processes]) })
}
