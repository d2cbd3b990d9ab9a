package leader_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/leader"
)

// TestRunLeadsUntilItsContextEnds is Spring's startAndStop.
func TestRunLeadsUntilItsContextEnds(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, func(f *fixture) {
		a := f.process("a", leader.Options{})
		f.is(a.IsLeader(f.Context()), leader.ErrNotLeader)
		running := a.start(a.lead)
		lease := <-a.began
		f.must(a.IsLeader(f.Context()))
		time.Sleep(5 * ttl) // it is renewed
		f.must(a.IsLeader(f.Context()))
		if now, err := a.Leader(f.Context()); err != nil || !now.Me || now.Client != "a" || now.Holder != lease.Holder() {
			f.Errorf("%+v, %v", now, err)
		}
		if err := running.stop(); err != errStop { //nolint:errorlint // nothing else is in it
			f.Errorf("Run: %v", err)
		}
		f.is(<-a.ended, errStop)
		f.is(a.IsLeader(f.Context()), leader.ErrNotLeader)
		if now, err := a.Leader(f.Context()); err != nil || now != (leader.Leader{}) {
			f.Errorf("%+v, %v", now, err)
		}
	})
}

// TestAnotherLeadsAfterTheFirst is Spring's competing.
func TestAnotherLeadsAfterTheFirst(t *testing.T) {
	t.Parallel()
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
		f.is(first.stop(), errStop)
		<-b.began
		f.takes("hand-over", began, 0, idle*6/5)
		if errs := b.newErrors(); errs != nil {
			f.Errorf("OnError of a candidate: %v", errs)
		}
	})
}

// TestACandidateThatEndsLeavesNothing is Spring's testGracefulLeaderSelectorExit.
func TestACandidateThatEndsLeavesNothing(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		a.start(a.lead)
		lease := <-a.began
		running := b.start(b.lead)
		time.Sleep(ttl)
		if err := running.stop(); err != errStop { //nolint:errorlint // nothing else is in it
			f.Errorf("Run: %v", err)
		}
		if len(b.began) > 0 {
			f.Error("it has led")
		}
		f.must(a.IsLeader(f.Context()))
		if now, err := leader.Current(f.Context(), b.registry.Repository(), role); err != nil || now.Holder != lease.Holder() {
			f.Errorf("%+v, %v", now, err)
		}
	})
}

// TestResignMovesTheRole is Spring's yield and testDistributedLeaderElection.
func TestResignMovesTheRole(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		a.start(a.lead)
		<-a.began
		running := b.start(b.lead)
		synctest.Wait()
		for range 3 {
			f.must(a.Resign(f.Context()))
			f.is(<-a.ended, leader.ErrResigned)
			f.is(a.IsLeader(f.Context()), leader.ErrNotLeader)
			<-b.began
			f.must(b.IsLeader(f.Context()))
			time.Sleep(time.Second + idle) // a sits out until it sees b lead
			f.must(b.Resign(f.Context()))
			<-a.began
			time.Sleep(time.Second + idle)
		}
		f.is(running.stop(), errStop)
		began := time.Now()
		f.must(a.Resign(f.Context()))
		<-a.began
		f.takes("a term after no other candidate", began, ttl, ttl+time.Millisecond)
	})
}

func TestResignOfNoLeader(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		f.is(a.Resign(f.Context()), leader.ErrNotLeader)
		a.start(a.lead)
		<-a.began
		b.start(b.lead)
		time.Sleep(time.Second)
		var not *leader.NotLeaderError
		if err := b.Resign(f.Context()); !errors.As(err, &not) || not.Leader.Client != "a" {
			f.Errorf("%v", err)
		}
		f.must(a.IsLeader(f.Context()))
	})
}

// TestResignFromWithin resigns in the function, which Resign therefore cannot wait for.
func TestResignFromWithin(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{SitOut: time.Hour})
		resigned := make(chan error, 1)
		a.start(func(ctx context.Context, _ *sqllock.Lease) error {
			inner, cancel := context.WithCancel(ctx)
			defer cancel()
			resigned <- a.Resign(inner)
			<-ctx.Done()
			return context.Cause(ctx)
		})
		f.must(<-resigned)
		synctest.Wait()
		f.is(a.IsLeader(f.Context()), leader.ErrNotLeader)
		if errs := a.newErrors(); errs != nil {
			f.Error(errs)
		}
	})
}

// TestTheLeaseIsRenewedUntilTheFunctionReturns has functions that take longer to return than a
// time-to-live, after each way in which a term is ended from outside.
func TestTheLeaseIsRenewedUntilTheFunctionReturns(t *testing.T) {
	t.Parallel()
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
		f.is(a.Resign(resigning), context.DeadlineExceeded) // Resign's wait ends; the term does, too
		f.is(<-a.ended, leader.ErrResigned)
		f.is(a.IsLeader(f.Context()), leader.ErrNotLeader)
		f.must(lease.Context().Err())
		f.must(a.Check(0))
		<-b.began
		f.takes("the function", began, drain, drain+idle*6/5)
		f.is(second.stop(), errStop)

		<-a.began
		third := b.start(b.lead)
		began = time.Now()
		if err := running.stop(); err != errStop { //nolint:errorlint // nothing else is in it
			f.Errorf("Run: %v", err)
		}
		<-b.began
		f.takes("the function", began, drain, drain+idle*6/5)
		f.is(third.stop(), errStop)
	})
}

// TestALostLeaseEndsTheTerm is Spring's competingWithLock: another holder has the row.
func TestALostLeaseEndsTheTerm(t *testing.T) {
	t.Parallel()
	inBothLayouts(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		a.start(a.lead)
		lease := <-a.began
		deleted, err := b.registry.Repository().Delete(f.Context(), role, lease.Holder())
		if !deleted || err != nil {
			f.Fatal(deleted, err)
		}
		f.is(<-a.ended, sqllock.ErrLockLost)
		if again := <-a.began; again.Token() <= lease.Token() {
			f.Errorf("token %d after %d", again.Token(), lease.Token())
		}
		if errs := a.newErrors(); len(errs) != 1 || !errors.Is(errs[0], sqllock.ErrLockLost) {
			f.Error(errs)
		}
	})
}

// TestAnErrorAfterTheTermIsReported has functions fail because they were interrupted.
func TestAnErrorAfterTheTermIsReported(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{SitOut: time.Second})
		failed := errors.New("failed")
		running := a.start(func(ctx context.Context, lease *sqllock.Lease) error {
			a.began <- lease
			<-ctx.Done()
			return failed
		})
		<-a.began
		f.must(a.Resign(f.Context()))
		<-a.began
		if errs := a.newErrors(); len(errs) != 1 || !errors.Is(errs[0], failed) {
			f.Error(errs)
		}
		err := running.stop()
		f.is(err, errStop)
		f.is(err, failed)
	})
}

// TestWhatTheFunctionReturns has a function end the election by an error, and by none.
func TestWhatTheFunctionReturns(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		failed := errors.New("failed")
		began := time.Now()
		if err := a.Run(f.Context(), func(context.Context, *sqllock.Lease) error { return failed }); err != failed { //nolint:errorlint // nothing else is in it
			f.Error(err)
		}
		f.takes("a run that fails", began, 0, time.Millisecond)
		terms := make(chan bool, 1000)
		b.start(func(context.Context, *sqllock.Lease) error { terms <- true; return nil })
		time.Sleep(10 * ttl)
		if n := len(terms); n < 5 || n > 10 { // SitOut, a time-to-live, and a pause that grows to as much
			f.Errorf("%d terms in 10 times the time-to-live", n)
		}
	})
}

// TestFunctionsThatReturnAtOnceDoNotSpin has two candidates, which lead in turn.
func TestFunctionsThatReturnAtOnceDoNotSpin(t *testing.T) {
	t.Parallel()
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		terms := make(chan string, 1000)
		for name, p := range map[string]*process{"a": a, "b": b} {
			p.start(func(context.Context, *sqllock.Lease) error { terms <- name; return nil })
		}
		time.Sleep(10 * ttl)
		n := len(terms)
		if n > 2*18 { // 7 that double from 0.1 s on, then 1 each time-to-live
			f.Errorf("%d terms in 10 times the time-to-live", n)
		}
		by := map[string]int{}
		for range n {
			by[<-terms]++
		}
		if by["a"] == 0 || by["b"] == 0 {
			f.Error(by)
		}
	})
}
