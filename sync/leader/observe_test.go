package leader_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/leader"
)

// TestTheDatabaseIsLost is Spring's testLostConnection, which is disabled there, and
// testExceptionFromLock: an error of the database ends a term, but not the election.
func TestTheDatabaseIsLost(t *testing.T) {
	inBothLayouts(t, func(f *fixture) {
		a := f.process("a", leader.Options{})
		a.start(a.lead)
		lease := <-a.began
		mend, broken := f.breakDatabase(), time.Now()
		f.Must(a.IsLeader(f.Context())) // it asks the clock, not the database
		f.Is(<-a.ended, sqllock.ErrLockLost)
		f.Is(a.IsLeader(f.Context()), leader.ErrNotLeader)
		f.Takes("the term", broken, ttl/2, ttl)
		time.Sleep(2 * ttl)
		errs := a.newErrors()
		f.Is(errs[0], sqllock.ErrLockLost)
		if len(errs) < 5 || len(errs) > 15 { // the pause grows from 0.1 s to a third of the time-to-live
			f.Errorf("%d errors", len(errs))
		}
		for _, err := range errs[1:] {
			f.Is(err, sqllock.ErrDatabase)
		}
		began := time.Now()
		mend()
		if again := <-a.began; again.Token() <= lease.Token() {
			f.Errorf("token %d after %d", again.Token(), lease.Token())
		}
		f.Takes("the next term", began, 0, ttl/3)
	})
}

// TestAReleaseThatFails leaves the row, which is no leader's: the elector leads again when it
// has sat out.
func TestAReleaseThatFails(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a := f.process("a", leader.Options{SitOut: 3 * time.Second})
		running := a.start(a.lead)
		<-a.began
		mend := f.breakDatabase()
		f.Is(a.Resign(f.Context()), sqllock.ErrDatabase)
		mend()
		began := time.Now()
		synctest.Wait()
		var not *leader.NotLeaderError
		if err := a.IsLeader(f.Context()); !errors.As(err, &not) || not.Leader != (leader.Leader{}) {
			f.Errorf("%v", err)
		}
		<-a.began
		f.Takes("the next term", began, 3*time.Second, 3*time.Second+idle)
		f.breakDatabase()
		err := running.stop()
		f.Is(err, errStop)
		f.Is(err, sqllock.ErrDatabase)
	})
}

// TestChangesAreReported compares what OnChange and Observe see.
func TestChangesAreReported(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		var observed []string
		observing, cancel := context.WithCancel(f.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			for l, err := range leader.Observe(observing, b.registry.Repository(), role, 0) {
				f.Must(err)
				if l.Me {
					f.Error("Observe belongs to no elector")
				}
				observed = append(observed, name(l))
			}
		}()
		time.Sleep(time.Second)
		first := a.start(a.lead)
		<-a.began
		time.Sleep(time.Second)
		second := b.start(b.lead)
		time.Sleep(3 * time.Second)
		f.Must(a.Resign(f.Context()))
		<-b.began
		time.Sleep(3 * time.Second)
		f.Is(first.stop(), errStop)
		f.Is(second.stop(), errStop)
		time.Sleep(3 * time.Second)
		cancel()
		<-done
		for _, one := range []struct {
			who       string
			got, want []string
		}{
			{"a", a.seen(), []string{"me", "-", "b"}},
			{"b", b.seen(), []string{"a", "me", "-"}},
			{"observer", observed, []string{"-", "a", "b", "-"}},
		} {
			got := one.got
			if i := slices.Index(got, "a"); i >= 0 && got[i+1] == "-" { // the moment between the two leaders
				got = slices.Delete(slices.Clone(got), i+1, i+2)
			}
			if !slices.Equal(got, one.want) {
				f.Errorf("%s: %q, want %q", one.who, one.got, one.want)
			}
		}
	})
}

// TestASlowHookDoesNotCostLeadership has OnChange block while the elector leads.
func TestASlowHookDoesNotCostLeadership(t *testing.T) {
	inBubble(t, func(f *fixture) {
		block := make(chan struct{})
		a := f.process("a", leader.Options{OnChange: func(leader.Leader) { <-block }})
		running := a.start(a.lead)
		<-a.began
		time.Sleep(2 * ttl)
		f.Must(a.IsLeader(f.Context()))
		f.Must(a.Resign(f.Context()))
		<-a.began
		close(block)
		f.Is(running.stop(), errStop)
	})
}

// TestObserve steps through what an observer sees: a leader, its end, and errors.
func TestObserve(t *testing.T) {
	inBubble(t, func(f *fixture) {
		const every = 3 * time.Second
		r := f.process("a", leader.Options{}).registry.Repository()
		ctx, cancel := context.WithCancel(f.Context())
		defer cancel()
		next, stop := iter.Pull2(leader.Observe(ctx, r, role, every))
		defer stop()
		want := func(client string, wanted error, after time.Duration) {
			f.Helper()
			began := time.Now()
			l, err, ok := next()
			if !ok || l.Client != client || !errors.Is(err, wanted) {
				f.Fatalf("%+v, %v, %v; want %q, %v", l, err, ok, client, wanted)
			}
			f.Takes("it", began, after, after+5*time.Millisecond)
		}
		want("", nil, 0)
		f.Must(check.ErrorOf(r.Acquire(f.Context(), role, r.NewHolder(), ttl)))
		want("a", nil, every)
		want("", nil, ttl-every) // as soon as the lease has ended
		f.Must(check.ErrorOf(r.Acquire(f.Context(), role, r.NewHolder(), ttl)))
		want("a", nil, every)
		mend := f.breakDatabase()
		want("", sqllock.ErrDatabase, every)
		want("", sqllock.ErrDatabase, every)
		mend()
		cancel()
		if l, err, ok := next(); ok {
			f.Errorf("%+v, %v after the end of its context", l, err)
		}
	})
}

func TestObserveRefuses(t *testing.T) {
	inBubble(t, func(f *fixture) {
		r := f.process("a", leader.Options{}).registry.Repository()
		for what, seq := range map[string]iter.Seq2[leader.Leader, error]{
			"a negative time": leader.Observe(f.Context(), r, role, -1),
			"no role":         leader.Observe(f.Context(), r, "", time.Second),
		} {
			n := 0
			for l, err := range seq {
				n++
				if l != (leader.Leader{}) || !errors.Is(err, sqllock.ErrInvalid) {
					f.Errorf("%s: %+v, %v", what, l, err)
				}
			}
			if n != 1 {
				f.Errorf("%s: %d values", what, n)
			}
		}
	})
}

// TestTheClientOfALeader reads rows of sqllock and of others.
func TestTheClientOfALeader(t *testing.T) {
	inBothLayouts(t, func(f *fixture) {
		r := f.process("a", leader.Options{}).registry.Repository()
		for i, test := range []struct{ holder, client string }{
			{"10.12.13.14:8080-00f00000001", "10.12.13.14:8080"},
			{"a-b-0123456789a", "a-b"},
			// For the rest of a minimum hold.
			{"a-b-k123456789a", "a-b"},
			// Java's.
			{"1b4e28ba-2fa1-11d2-883f-0016d3cca427", "1b4e28ba-2fa1-11d2-883f-0016d3cca427"},
			{"host-0123456789A", "host-0123456789A"},
			{"nodash", "nodash"},
		} {
			role := fmt.Sprint("role ", i)
			f.Must(check.ErrorOf(r.Acquire(f.Context(), role, test.holder, ttl)))
			time.Sleep(time.Second)
			got, err := leader.Current(f.Context(), r, role)
			want := leader.Leader{Client: test.client, Holder: test.holder, Age: time.Second, Left: ttl - time.Second}
			if err != nil || got != want {
				f.Errorf("%+v, %v; want %+v", got, err, want)
			}
			time.Sleep(ttl)
			check.Equal(f, "leader after the end", check.Value(leader.Current(f.Context(), r, role))(f), leader.Leader{})
		}
	})
}

// A record is what an observer of elections is told.
type record struct {
	mu     sync.Mutex
	events []observe.Election
}

func (r *record) registry() sqllock.RegistryOptions {
	return sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: idle, Observers: []*observe.Observer{{
		Election: func(_ context.Context, e observe.Election) {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.events = append(r.events, e)
		},
	}}, NoRenew: true}
}

// expect compares the states, and for the end of a term how long it lasted and why it ended.
func (r *record) expect(f *fixture, want ...string) {
	f.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	var got []string
	for i, e := range r.events {
		text := string(e.State)
		if (e.Holder != "") != (e.Token != 0) || e.Role != role {
			f.Errorf("%+v", e)
		}
		if i > 0 && r.events[i-1].State == observe.ElectorLeader {
			text += fmt.Sprintf(" after %v: %v", e.Led.Round(time.Second), e.Cause)
			if e.Holder != r.events[i-1].Holder || e.Token != r.events[i-1].Token {
				f.Errorf("%+v ended, %+v began", e, r.events[i-1])
			}
		}
		got = append(got, text)
	}
	check.Same(f, "told", got, want)
	r.events = nil
}

// TestElectionsAreReported has terms end in each way. Every change of the state is reported once,
// before Run returns.
func TestElectionsAreReported(t *testing.T) {
	inBubble(t, func(f *fixture) {
		var r record
		a := f.processWith("a", leader.Options{}, r.registry())
		running := a.start(a.lead)
		<-a.began
		r.expect(f, "candidate", "leader")
		time.Sleep(time.Minute)
		f.Must(a.Resign(f.Context()))
		r.expect(f, "candidate") // its term is compared above only beside its beginning
		<-a.began
		f.Is(running.stop(), errStop)
		r.expect(f, "leader", "candidate after 0s: "+errStop.Error(), "retired")

		_ = a.Run(f.Context(), func(context.Context, *sqllock.Lease) error {
			time.Sleep(time.Second)
			return errors.New("failed")
		})
		r.expect(f, "candidate", "leader", "candidate after 1s: <nil>", "retired")
	})
}

// TestALeaderThatIsStuckIsReportedInTime has the function ignore that its lease is lost. The end of
// the term is reported when the lease ends.
func TestALeaderThatIsStuckIsReportedInTime(t *testing.T) {
	inBubble(t, func(f *fixture) {
		var r record
		a := f.processWith("a", leader.Options{}, r.registry())
		stop := make(chan struct{})
		running := a.start(func(_ context.Context, lease *sqllock.Lease) error {
			a.began <- lease
			<-stop
			return nil
		})
		f.Must(check.ErrorOf(a.registry.Repository().Delete(f.Context(), role, (<-a.began).Holder())))
		time.Sleep(ttl)
		r.expect(f, "candidate", "leader", fmt.Sprintf("candidate after %v: %v", (ttl/3).Round(time.Second), sqllock.ErrLockLost))
		running.cancel(errStop)
		close(stop)
		f.Is(running.stop(), errStop)
		r.expect(f, "retired")
	})
}

// TestAPanicOfAnObserverReleasesTheRole has an observer panic when a term begins, and when it has
// ended.
func TestAPanicOfAnObserverReleasesTheRole(t *testing.T) {
	t.Parallel()
	for _, state := range []observe.ElectorState{observe.ElectorLeader, observe.ElectorRetired} {
		again(t, func(f *fixture) {
			of := sqllock.RegistryOptions{TTL: ttl, IdleBetweenTries: idle, Observers: []*observe.Observer{{
				Election: func(_ context.Context, e observe.Election) {
					if e.State == state {
						panic(errStop)
					}
				},
			}}, NoRenew: true}
			a := f.processWith("a", leader.Options{}, of)
			func() {
				defer func() {
					if r := recover(); r != errStop { //nolint:errorlint // it is this one
						f.Errorf("recovered %v", r)
					}
				}()
				_ = a.Run(f.Context(), func(context.Context, *sqllock.Lease) error { return errStop })
			}()
			check.Equal(f, "rows", len(check.Value(a.registry.Repository().List(f.Context()))(f)), 0)
		})
	}
}
