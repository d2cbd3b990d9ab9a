package leader_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/leader"
)

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
	}}}
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
			}}}
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
