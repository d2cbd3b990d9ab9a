package leader_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/leader"
)

// TestContextsOfATermEndWithItsLease has the function wait for the channel of its context, and of
// one that is made from it, and ask neither of them: nothing but the lease can end them.
func TestContextsOfATermEndWithItsLease(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{})
		ended := make(chan time.Time, 10)
		a.start(func(ctx context.Context, lease *sqllock.Lease) error {
			made, cancel := context.WithCancel(ctx)
			defer cancel()
			own, derived := ctx.Done(), made.Done()
			a.began <- lease
			for _, done := range []<-chan struct{}{own, derived} {
				select {
				case <-done:
				case <-time.After(ttl):
					f.Error("a context outlasts the lease that it is made from")
				}
			}
			if cause := context.Cause(made); !errors.Is(cause, sqllock.ErrLockLost) {
				f.Errorf("cause %v", cause)
			}
			ended <- time.Now()
			return nil
		})
		deadline := (<-a.began).Deadline()
		f.breakDatabase()
		if at := <-ended; !at.Equal(deadline) {
			f.Errorf("the contexts have ended %v after the lease", at.Sub(deadline))
		}
	})
}

// TestTheContextOfATermReadsTheClock asks the context at the very end of the lease, when its timer
// may not have run yet, as after a pause of the process. It is repeated, because mostly the timer
// has run.
func TestTheContextOfATermReadsTheClock(t *testing.T) {
	t.Parallel()
	for range 20 {
		again(t, func(f *fixture) {
			a := f.process("a", leader.Options{})
			ended := make(chan bool, 10)
			a.start(func(ctx context.Context, lease *sqllock.Lease) error {
				a.began <- lease
				time.Sleep(time.Until(lease.Deadline()))
				if a.IsLeader(ctx) == nil || ctx.Err() == nil {
					f.Error("it leads although its lease has ended")
				}
				ended <- true
				return nil
			})
			<-a.began
			f.breakDatabase()
			<-ended
		})
	}
}
