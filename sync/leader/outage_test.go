package leader_test

import (
	"context"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/leader"
)

// TestACandidateWaitsThroughAnOutage has no errors to report with WaitThroughOutages, and leads
// when the database is back. Without a lock table there is no waiting.
func TestACandidateWaitsThroughAnOutage(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, network := f.networkedWith("a", sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: idle, WaitThroughOutages: true})
		outage := func(context.Context, flaky.Moment) error { return errStop }
		network.Follow(outage)
		running := a.start(a.lead)
		time.Sleep(3 * ttl)
		if errs := a.newErrors(); errs != nil {
			f.Errorf("OnError: %v", errs)
		}
		began := time.Now()
		network.Follow(nil)
		<-a.began
		f.Takes("the next term", began, 0, time.Second)

		network.Follow(outage)
		f.Is(<-a.ended, sqllock.ErrLockLost)
		time.Sleep(ttl)
		if errs := a.newErrors(); len(errs) != 1 {
			f.Errorf("OnError: %v", errs)
		}
		began = time.Now()
		if err := running.stop(); err != errStop { //nolint:errorlint // nothing else is in it
			f.Errorf("Run: %v", err)
		}
		f.Takes("the end", began, 0, time.Millisecond)
		network.Follow(nil)

		f.breakDatabase()
		running = a.start(a.lead)
		time.Sleep(time.Second)
		f.Is(running.stop(), errStop)
		if errs := a.newErrors(); len(errs) == 0 {
			f.Error("no error, although there is no table")
		} else {
			f.Is(errs[0], sqllock.ErrSchema)
		}
	})
}

// TestTheTermAfterTheMinimumHold has a function enter its lock with a minimum hold, which keeps
// the row when the term is over: the next one begins when that has passed.
func TestTheTermAfterTheMinimumHold(t *testing.T) {
	inBubble(t, func(f *fixture) {
		const minHold = 3 * ttl
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		lock := check.Value(a.registry.Obtain(role))(f)
		began := time.Now()
		running := a.start(func(ctx context.Context, lease *sqllock.Lease) error {
			inner := check.Value(lock.WithMinHold(minHold).Lock(ctx))(f)
			a.began <- lease
			<-ctx.Done()
			return inner.Unlock(ctx)
		})
		<-a.began
		b.start(b.lead)
		time.Sleep(time.Second)
		f.Is(running.stop(), errStop)
		<-b.began
		f.Takes("b", began, minHold, minHold+idle)
	})
}
