package semaphore_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/observe"
)

// TestFreePermitsTakeNoTurn has as many callers of one process as there are permits, over a database that takes
// its time. None of them locks the turn, and few choose a permit in vain.
func TestFreePermitsTakeNoTurn(t *testing.T) {
	inBubble(t, func(f *fixture) {
		const permits, pairs = 8, 50
		var turns, tries atomic.Int32
		db, network := f.Network()
		s := f.semaphore(f.registryOn(db, "a", sqllock.RegistryOptions{Observers: []*observe.Observer{{
			Acquire: func(ctx context.Context, e observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
				if tries.Add(1); strings.HasSuffix(e.Key, " turn") {
					turns.Add(1)
				}
				return ctx, nil
			},
		}}}), permits)
		network.Follow(func(context.Context, flaky.Moment) error {
			time.Sleep(100 * time.Microsecond)
			return nil
		})
		var working sync.WaitGroup
		for range permits {
			working.Go(func() {
				for range pairs {
					f.Must(check.Value(s.Acquire(f.Context(), 1))(f).Unlock(f.Context()))
				}
			})
		}
		working.Wait()
		network.Follow(nil)
		if n := turns.Load(); n > 0 {
			f.Errorf("the turn was locked %d times", n)
		}
		if n := tries.Load(); n > permits*pairs+permits*permits {
			f.Errorf("%d tries of %d acquisitions", n, permits*pairs)
		}
		f.has()
	})
}

// TestAGuessGivesWay has another process take the turn after this one has found it free: a caller that has locked a
// permit meanwhile releases it, and the next one does not lock any.
func TestAGuessGivesWay(t *testing.T) {
	inBothLayouts(t, func(f *fixture) {
		registry, network := f.networked()
		a, other := f.semaphore(registry, 3), f.registry("other")
		f.Unlock(f.acquires(a, 1))
		turn := check.Value(other.TryLock(f.Context(), turnRow))(f)
		f.isHeldBy(f.refusal(a, 1), turn.Holder())
		f.has(turnRow)
		network.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Begin {
				f.Error("a caller that knows of the turn has begun to write")
			}
			return nil
		})
		f.isHeldBy(f.refusal(a, 1), turn.Holder())
		network.Follow(nil)
		f.Unlock(turn)
		f.Unlock(f.acquires(a, 1))
	})
}
