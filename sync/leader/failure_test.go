package leader_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/leader"
)

// TestAPanicReleasesTheLease also has another elector lead in its place.
func TestAPanicReleasesTheLease(t *testing.T) {
	inBubble(t, func(f *fixture) {
		for name, end := range map[string]func(){"panic": func() { panic("broken") }, "Goexit": runtime.Goexit} {
			a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
			ended := make(chan any)
			go func() {
				defer func() { ended <- recover() }()
				err := a.Run(f.Context(), func(_ context.Context, lease *sqllock.Lease) error {
					a.began <- lease
					time.Sleep(time.Second)
					end()
					return nil
				})
				f.Errorf("%s: Run returned %v", name, err)
			}()
			<-a.began
			running := b.start(b.lead)
			if got := <-ended; name == "panic" && got != "broken" || name == "Goexit" && got != nil {
				f.Errorf("%s: recovered %v", name, got)
			}
			began := time.Now()
			<-b.began
			f.Takes("after "+name, began, 0, idle*6/5)
			f.Is(a.IsLeader(f.Context()), leader.ErrNotLeader)
			f.Is(running.stop(), errStop)
			again := a.start(a.lead) // it can run again
			<-a.began
			f.Is(again.stop(), errStop)
		}
	})
}

// TestAFunctionThatIgnoresItsContext loses its lease, and another elector leads.
func TestAFunctionThatIgnoresItsContext(t *testing.T) {
	inBubble(t, func(f *fixture) {
		stuck := make(chan time.Duration, 100)
		a := f.process("a", leader.Options{Grace: 2 * time.Second, OnStuck: func(since time.Duration) { stuck <- since }})
		b := f.process("b", leader.Options{})
		stop := make(chan struct{})
		running := a.start(func(_ context.Context, lease *sqllock.Lease) error {
			a.began <- lease
			<-stop
			return nil
		})
		lease := <-a.began
		b.start(b.lead)
		f.Must(check.ErrorOf(b.registry.Repository().Delete(f.Context(), role, lease.Holder())))
		<-b.began
		<-lease.Context().Done()
		synctest.Wait()
		f.Is(a.IsLeader(f.Context()), leader.ErrNotLeader)
		f.Must(a.Check(time.Second))
		time.Sleep(time.Second + time.Millisecond)
		f.Is(a.Check(time.Second), leader.ErrStuck)
		f.Must(b.Check(0))
		for i := range 3 {
			if since, want := <-stuck, time.Duration(i+1)*2*time.Second; since != want {
				f.Errorf("OnStuck(%v), want %v", since, want)
			}
		}
		f.Is(resign(a, time.Second), context.DeadlineExceeded)
		close(stop)
		synctest.Wait()
		f.Must(a.Check(0))
		check.Equal(f, "calls of OnStuck after the function has returned", len(stuck), 0)
		f.Is(a.Resign(f.Context()), leader.ErrNotLeader)
		f.Is(running.stop(), errStop)
	})
}

// resign is Resign, limited to d.
func resign(p *process, d time.Duration) error {
	ctx, cancel := context.WithTimeout(p.f.Context(), d)
	defer cancel()
	return p.Resign(ctx)
}

func TestRunRefuses(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{})
		never := func(context.Context, *sqllock.Lease) error { return errors.New("it leads") }
		f.Is(a.Run(f.Context(), nil), sqllock.ErrInvalid)

		lease := check.Value(a.registry.Lock(f.Context(), role))(f)
		f.Is(a.Run(lease.Context(), never), sqllock.ErrInvalid)
		inner := check.Value(a.registry.Lock(lease.Context(), role))(f)
		f.Must(inner.Unlock(f.Context()))
		f.Is(a.Run(inner.Context(), never), sqllock.ErrInvalid) // the outer one is held
		f.Must(lease.Unlock(f.Context()))
		ctx, cancel := context.WithCancel(lease.Context())
		cancel()
		f.Is(a.Run(ctx, never), context.Canceled) // it carries one that was unlocked: not refused for that

		lost := check.Value(a.registry.Lock(f.Context(), role))(f)
		time.Sleep(ttl)
		f.Is(a.Run(lost.Context(), never), sqllock.ErrInvalid)

		other := check.Value(a.registry.Lock(f.Context(), "another role"))(f)
		outer, end := context.WithCancel(other.Context())
		err := a.Run(outer, func(ctx context.Context, lease *sqllock.Lease) error {
			check.Equal(f, "lease of the context", check.Value(a.registry.LeaseFrom(ctx, role))(f), lease)
			check.Is(f, check.ErrorOf(a.registry.LeaseFrom(ctx, "another role")), nil)
			f.Is(a.Run(f.Context(), never), sqllock.ErrInvalid) //nolint:contextcheck // it runs already, whatever the context
			f.Is(f.candidate(a.registry, leader.Options{}).Run(ctx, never), sqllock.ErrInvalid)
			end()
			return nil
		})
		f.Is(err, context.Canceled)
		f.Must(other.Unlock(f.Context()))
		f.Must(a.registry.Close(f.Context()))
		f.Is(a.Run(f.Context(), never), sqllock.ErrClosed)
	})
}

func TestNewRefuses(t *testing.T) {
	inBubble(t, func(f *fixture) {
		registry := f.process("a", leader.Options{}).registry
		for what, err := range map[string]error{
			"no registry":  check.ErrorOf(leader.New(nil, role, nil)),
			"no role":      check.ErrorOf(leader.New(registry, "", nil)),
			"SitOut":       check.ErrorOf(leader.New(registry, role, &leader.Options{SitOut: -1})),
			"ObserveEvery": check.ErrorOf(leader.New(registry, role, &leader.Options{ObserveEvery: -1})),
			"Grace":        check.ErrorOf(leader.New(registry, role, &leader.Options{Grace: -1})),
		} {
			if !errors.Is(err, sqllock.ErrInvalid) {
				f.Errorf("%s: %v", what, err)
			}
		}
		f.Must(check.ErrorOf(leader.New(registry, role, nil)))
	})
}

// TestCloseEndsRun closes the registry of the leader, and that of a candidate.
func TestCloseEndsRun(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		first := a.start(a.lead)
		<-a.began
		second := b.start(b.lead)
		time.Sleep(time.Second)
		f.Must(b.registry.Close(f.Context()))
		f.Is(<-second.result, sqllock.ErrClosed)
		f.Must(a.registry.Close(f.Context()))
		f.Is(<-first.result, sqllock.ErrClosed)
		f.Is(<-a.ended, sqllock.ErrClosed)
	})
}

// TestCloseEndsRunInAPause closes the registry in the long pause of an elector whose function returns at once, again and
// again.
func TestCloseEndsRunInAPause(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{SitOut: time.Millisecond})
		terms := make(chan bool)
		running := a.start(func(context.Context, *sqllock.Lease) error { terms <- true; return nil })
		for range 8 {
			<-terms
		}
		time.Sleep(time.Second)
		began := time.Now()
		f.Must(a.registry.Close(f.Context()))
		f.Is(<-running.result, sqllock.ErrClosed)
		f.Takes("the end of Run", began, 0, idle)
	})
}

// TestCloseEndsRunInAnOutage closes the registry in the pause of an elector that has met errors of the database.
func TestCloseEndsRunInAnOutage(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{})
		mend := f.breakDatabase()
		running := a.start(a.lead)
		time.Sleep(2 * ttl) // the pauses have grown
		for a.newErrors(); len(a.newErrors()) == 0; {
			time.Sleep(idle / 10)
		}
		mend()
		began := time.Now()
		f.Must(a.registry.Close(f.Context()))
		f.Is(<-running.result, sqllock.ErrClosed)
		f.Takes("the end of Run", began, 0, idle)
	})
}

// TestTwoElectorsOfOneRegistry lead in turn, with and without HandOff.
func TestTwoElectorsOfOneRegistry(t *testing.T) {
	t.Parallel()
	for _, handOff := range []bool{false, true} {
		runInBubble(t, fmt.Sprint("HandOff ", handOff), func(f *fixture) {
			a := f.processWith("a", leader.Options{}, sqllock.RegistryOptions{TTL: ttl, HandOff: handOff, NoRenew: true})
			b := f.candidate(a.registry, leader.Options{})
			a.start(a.lead)
			<-a.began
			b.start(b.lead)
			for range 5 {
				time.Sleep(2 * time.Second)
				f.Must(a.Resign(f.Context()))
				<-b.began
				time.Sleep(2 * time.Second)
				f.Must(b.Resign(f.Context()))
				<-a.began
			}
		})
	}
}

// TestTheContextOfATerm has the values and the deadline of Run's context, and its error.
func TestTheContextOfATerm(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{})
		type key struct{}
		ctx, cancel := context.WithTimeout(context.WithValue(f.Context(), key{}, "value"), time.Minute)
		defer cancel()
		err := a.Run(ctx, func(ctx context.Context, lease *sqllock.Lease) error {
			check.Equal(f, "value", ctx.Value(key{}), "value")
			if end, ok := ctx.Deadline(); !ok || time.Until(end) > time.Minute || time.Until(end) < time.Minute-time.Second {
				f.Errorf("deadline %v", end)
			}
			<-ctx.Done()
			f.Is(ctx.Err(), context.DeadlineExceeded)
			f.Must(lease.Context().Err())
			return ctx.Err()
		})
		if err != context.DeadlineExceeded { //nolint:errorlint // nothing else is in it
			f.Error(err)
		}
		f.Is(a.Run(ctx, a.lead), context.DeadlineExceeded)
	})
}

// TestCloseFromWithin closes the registry in the function.
func TestCloseFromWithin(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{})
		failed := errors.New("failed")
		err := a.Run(f.Context(), func(ctx context.Context, _ *sqllock.Lease) error {
			f.Must(a.registry.Close(f.Context())) //nolint:contextcheck // ctx ends with it
			f.Is(context.Cause(ctx), sqllock.ErrClosed)
			return failed
		})
		f.Is(err, sqllock.ErrClosed)
		f.Is(err, failed)
	})
}

// A fragileContext ends when it is asked for its error after it was broken.
type fragileContext struct {
	context.Context
	cancel context.CancelCauseFunc
	broken atomic.Bool
}

func (c *fragileContext) Err() error {
	if c.broken.Load() {
		c.cancel(errStop)
	}
	return c.Context.Err()
}

// TestTheContextEndsJustAfterAnError has the context of Run end when an attempt has failed.
func TestTheContextEndsJustAfterAnError(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, network := f.networked("a")
		inner, cancel := context.WithCancelCause(f.Context())
		ctx := &fragileContext{Context: inner, cancel: cancel}
		network.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query {
				return nil // a read of the row, to see who leads
			}
			ctx.broken.Store(true)
			return errors.New("failed")
		})
		err := a.Run(ctx, a.lead)
		f.Is(err, errStop)
		f.Is(err, sqllock.ErrDatabase)
		network.Follow(nil)
	})
}

// TestAnErrorUnderALeaseThatWasLost has a function fail when its row is gone, and another may lead
// already, although its context lasts: the election goes on, as after a loss that was noticed.
func TestAnErrorUnderALeaseThatWasLost(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{})
		failed := errors.New("the token is too old")
		a.start(func(ctx context.Context, lease *sqllock.Lease) error {
			a.began <- lease
			if len(a.began) > 1 {
				<-ctx.Done()
				return nil
			}
			f.Must(check.ErrorOf(a.registry.Repository().Delete(f.Context(), role, lease.Holder()))) //nolint:contextcheck // any will do
			f.Must(ctx.Err())
			return failed
		})
		for len(a.began) < 2 {
			time.Sleep(time.Second)
		}
		if errs := a.newErrors(); len(errs) != 2 || errs[0] != failed || !errors.Is(errs[1], sqllock.ErrLockLost) { //nolint:errorlint // nothing else is in it
			f.Error(errs)
		}
	})
}

// TestACandidateWaitsThroughAnOutage has no errors to report with WaitThroughOutages, and leads
// when the database is back. Without a lock table there is no waiting.
func TestACandidateWaitsThroughAnOutage(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, network := f.networkedWith("a", sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: idle, WaitThroughOutages: true, NoRenew: true})
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
		check.Equal(f, "OnError", len(a.newErrors()), 1)
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
