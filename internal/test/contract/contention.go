package contract

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/sqllock/sqllock"
)

// contentionTests are about many callers that want a lock at the same time.
var contentionTests = []test{
	inEachCell("ACounterLosesNoUpdate", func(f *fixture) {
		const processes, callers, rounds = 3, 3, 5
		var counter, inside int
		f.concurrently(processes, callers, func(r *sqllock.Registry) error {
			for done := 0; done < rounds; {
				err := r.ExecuteLocked(f.Context(), "k", func(context.Context) error {
					if inside++; inside != 1 {
						return errors.New("two holders")
					}
					counter, done = counter+1, done+1
					inside--
					return nil
				})
				if err != nil && !isUnanswered(err) {
					return err
				}
			}
			return nil
		})
		equal(f, "counter", counter, processes*callers*rounds)
	}),
	inEachCell("OfTwentyTriesExactlyOneSucceeds", func(f *fixture) {
		for tries, round, counted := 20, 0, 0; counted < 3; round++ {
			var winners, unanswered atomic.Int64
			f.concurrently(tries, 1, func(r *sqllock.Registry) error {
				lock, err := r.Obtain(fmt.Sprint(round))
				if err != nil {
					return err
				}
				_, err = lock.TryLock(f.Context())
				switch {
				case err == nil:
					winners.Add(1)
				case isUnanswered(err):
					unanswered.Add(1)
				case !errors.Is(err, sqllock.ErrNotAcquired):
					return err
				}
				return nil
			})
			if winners.Load() > 1 {
				f.Fatalf("round %d: %d winners, %d without an answer", round, winners.Load(), unanswered.Load())
			}
			if unanswered.Load() > 0 { // the machine is too busy for so many: a row may have been taken back
				tries = max(2, tries/2)
				continue
			}
			counted++
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

// isUnanswered reports whether err says that the server was too slow.
func isUnanswered(err error) bool {
	return err != nil && strings.Contains(err.Error(), "no answer for")
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
