package semaphore_test

import (
	"context"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// afterReads calls do with the number of each read of a process, when the process is about to know what
// it has read. Queries in transactions are not counted: they write, and have the file locked.
func afterReads(do func(read int)) flaky.Plan {
	reads, writes := 0, false
	return func(_ context.Context, m flaky.Moment) error {
		switch {
		case m.Op == flaky.Begin:
			writes = true
		case m.Op == flaky.Commit || m.Op == flaky.Rollback:
			writes = false
		case m.Done && !writes:
			reads++
			do(reads)
		}
		return nil
	}
}

// TestOthersAreFaster has another process acquire all permits that this one has read as free.
func TestOthersAreFaster(t *testing.T) {
	inBothLayouts(t, func(f *fixture) {
		registry, network := f.networked()
		a, other := f.semaphore(registry, 3), f.process("other", 3)
		var theirs *sqllock.Lease
		plan := afterReads(func(read int) {
			if read == 1 {
				theirs = f.acquires(other, 3)
			}
		})
		network.Follow(plan)
		f.isHeldBy(check.ErrorOf(a.TryAcquire(f.Context(), 1)), theirs.Holder())
		f.Unlock(theirs)

		network.Follow(afterReads(func(read int) {
			if read == 1 {
				theirs = f.acquires(other, 3)
				time.AfterFunc(time.Second, func() { f.Unlock(theirs) })
			}
		}))
		began := time.Now()
		lease := check.Value(a.Acquire(f.Context(), 2))(f)
		f.Takes("Acquire", began, time.Second, time.Second+longestPoll)
		network.Follow(nil)
		f.Unlock(lease)
		f.has()
	})
}

// TestOthersAreFasterAtSomePermits has another process acquire one of the permits that this one has read
// as free, each time: there are enough others.
func TestOthersAreFasterAtSomePermits(t *testing.T) {
	inBubble(t, func(f *fixture) {
		const permits = 5
		registry, network := f.networked()
		a, other := f.semaphore(registry, permits), f.process("other", permits)
		var theirs []*sqllock.Lease
		network.Follow(afterReads(func(read int) {
			if read < permits {
				theirs = append(theirs, f.acquires(other, 1))
			}
		}))
		ours := check.Value(a.TryAcquire(f.Context(), 1))(f)
		network.Follow(nil)
		f.Unlock(append(theirs, ours)...)
		f.has()
	})
}
