package leader_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	fixtures "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/sync/leader"
)

// TestAnotherLeadsAfterTheFirst is Spring's competing.
func TestAnotherLeadsAfterTheFirst(t *testing.T) {
	inBothLayouts(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		first := a.start(a.lead)
		<-a.began
		b.start(b.lead)
		time.Sleep(2 * ttl)
		var not *leader.NotLeaderError
		if err := b.IsLeader(f.Context()); !errors.As(err, &not) || not.Leader.Client != "a" || not.Leader.Me {
			f.Errorf("%v", err)
		}
		began := time.Now()
		f.Is(first.stop(), errStop)
		<-b.began
		f.Takes("hand-over", began, 0, idle*6/5)
		if errs := b.newErrors(); errs != nil {
			f.Errorf("OnError of a candidate: %v", errs)
		}
	})
}

// TestACandidateThatEndsLeavesNothing is Spring's testGracefulLeaderSelectorExit.
func TestACandidateThatEndsLeavesNothing(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		a.start(a.lead)
		lease := <-a.began
		running := b.start(b.lead)
		time.Sleep(ttl)
		if err := running.stop(); err != errStop { //nolint:errorlint // nothing else is in it
			f.Errorf("Run: %v", err)
		}
		check.Equal(f, "terms", len(b.began), 0)
		f.Must(a.IsLeader(f.Context()))
		if now, err := leader.Current(f.Context(), b.registry.Repository(), role); err != nil || now.Holder != lease.Holder() {
			f.Errorf("%+v, %v", now, err)
		}
	})
}

// TestResignMovesTheRole is Spring's yield and testDistributedLeaderElection.
func TestResignMovesTheRole(t *testing.T) {
	inBothLayouts(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		a.start(a.lead)
		<-a.began
		running := b.start(b.lead)
		synctest.Wait()
		for range 3 {
			f.Must(a.Resign(f.Context()))
			f.Is(<-a.ended, leader.ErrResigned)
			f.Is(a.IsLeader(f.Context()), leader.ErrNotLeader)
			<-b.began
			f.Must(b.IsLeader(f.Context()))
			time.Sleep(time.Second + idle) // a sits out until it sees b lead
			f.Must(b.Resign(f.Context()))
			<-a.began
			time.Sleep(time.Second + idle)
		}
		f.Is(running.stop(), errStop)
		began := time.Now()
		f.Must(a.Resign(f.Context()))
		<-a.began
		f.Takes("a term after no other candidate", began, ttl, ttl+time.Millisecond)
	})
}

func TestResignOfNoLeader(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		f.Is(a.Resign(f.Context()), leader.ErrNotLeader)
		a.start(a.lead)
		<-a.began
		b.start(b.lead)
		time.Sleep(time.Second)
		var not *leader.NotLeaderError
		if err := b.Resign(f.Context()); !errors.As(err, &not) || not.Leader.Client != "a" {
			f.Errorf("%v", err)
		}
		f.Must(a.IsLeader(f.Context()))
	})
}

// TestTheLeaseIsRenewedUntilTheFunctionReturns has functions that take longer to return than a
// time-to-live, after each way in which a term is ended from outside.
func TestTheLeaseIsRenewedUntilTheFunctionReturns(t *testing.T) {
	const drain = 2 * ttl
	inBubble(t, func(f *fixture) {
		stuck := func(time.Duration) { f.Error("OnStuck, although the lease is renewed") }
		a, b := f.process("a", leader.Options{OnStuck: stuck}), f.process("b", leader.Options{})
		running := a.start(a.leadThen(drain))
		lease := <-a.began
		second := b.start(b.lead)

		began := time.Now()
		resigning, cancel := context.WithTimeout(f.Context(), time.Second)
		defer cancel()
		f.Is(a.Resign(resigning), context.DeadlineExceeded) // Resign's wait ends; the term does, too
		f.Is(<-a.ended, leader.ErrResigned)
		f.Is(a.IsLeader(f.Context()), leader.ErrNotLeader)
		f.Must(lease.Context().Err())
		f.Must(a.Check(0))
		<-b.began
		f.Takes("the function", began, drain, drain+idle*6/5)
		f.Is(second.stop(), errStop)

		<-a.began
		third := b.start(b.lead)
		began = time.Now()
		if err := running.stop(); err != errStop { //nolint:errorlint // nothing else is in it
			f.Errorf("Run: %v", err)
		}
		<-b.began
		f.Takes("the function", began, drain, drain+idle*6/5)
		f.Is(third.stop(), errStop)
	})
}

// TestAnErrorAfterTheTermIsReported has functions fail because they were interrupted.
func TestAnErrorAfterTheTermIsReported(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{SitOut: time.Second})
		failed := errors.New("failed")
		running := a.start(func(ctx context.Context, lease *sqllock.Lease) error {
			a.began <- lease
			<-ctx.Done()
			return failed
		})
		<-a.began
		f.Must(a.Resign(f.Context()))
		<-a.began
		if errs := a.newErrors(); len(errs) != 1 || !errors.Is(errs[0], failed) {
			f.Error(errs)
		}
		err := running.stop()
		f.Is(err, errStop)
		f.Is(err, failed)
	})
}

// TestWhatTheFunctionReturns has a function end the election by an error, and by none.
func TestWhatTheFunctionReturns(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		failed := errors.New("failed")
		began := time.Now()
		if err := a.Run(f.Context(), func(context.Context, *sqllock.Lease) error { return failed }); err != failed { //nolint:errorlint // nothing else is in it
			f.Error(err)
		}
		f.Takes("a run that fails", began, 0, time.Millisecond)
		terms := make(chan bool, 1000)
		b.start(func(context.Context, *sqllock.Lease) error { terms <- true; return nil })
		time.Sleep(10 * ttl)
		if n := len(terms); n < 5 || n > 10 { // SitOut, a time-to-live, and a pause that grows to as much
			f.Errorf("%d terms in 10 times the time-to-live", n)
		}
	})
}

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
			check.Is(f, context.Cause(made), sqllock.ErrLockLost)
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

// TestAWakeUpMovesTheRoleAtOnce has candidates that poll once an hour.
func TestAWakeUpMovesTheRoleAtOnce(t *testing.T) {
	inBubble(t, func(f *fixture) {
		released := new(fixtures.Waker)
		of := sqllock.RegistryOptions{TTL: 3 * time.Hour, IdleBetweenTries: time.Hour, Waker: released, NoRenew: true}
		a, b := f.processWith("a", leader.Options{}, of), f.processWith("b", leader.Options{}, of)
		first := a.start(a.lead)
		<-a.began
		b.start(b.lead)
		time.Sleep(10 * time.Second)
		began := time.Now()
		for range 3 {
			f.Must(a.Resign(f.Context()))
			released.WakeAll()
			<-b.began
			time.Sleep(10 * time.Second) // a sees that b leads
			f.Must(b.Resign(f.Context()))
			released.WakeAll()
			<-a.began
			time.Sleep(10 * time.Second)
		}
		f.Is(first.stop(), errStop)
		released.WakeAll()
		<-b.began
		f.Takes("everything", began, time.Minute, time.Minute)
	})
}
