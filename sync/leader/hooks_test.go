package leader_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/sync/leader"
)

// TestOnStuckIsNotCalledAfterTheFunction has the function return while OnStuck runs, which takes
// longer than Grace: the next call would come too late. It is repeated, because it is by chance
// what a goroutine sees first of two things that have happened.
func TestOnStuckIsNotCalledAfterTheFunction(t *testing.T) {
	t.Parallel()
	for range 20 {
		again(t, func(f *fixture) {
			const grace = time.Second
			calls, returned := 0, make(chan struct{})
			a := f.process("a", leader.Options{Grace: grace, OnStuck: func(since time.Duration) {
				calls++
				if since < grace {
					f.Errorf("OnStuck(%v)", since)
				}
				<-returned
				time.Sleep(2 * grace)
			}})
			running := a.start(func(ctx context.Context, lease *sqllock.Lease) error {
				a.began <- lease
				<-ctx.Done()
				time.Sleep(grace + grace/2)
				close(returned)
				return nil
			})
			f.Must(check.ErrorOf(a.registry.Repository().Delete(f.Context(), role, (<-a.began).Holder())))
			<-returned
			f.Is(running.stop(), errStop)
			check.Equal(f, "calls of OnStuck", calls, 1)
		})
	}
}

// TestAStuckElectorSeesTheNextLeader has a function ignore that its lease is lost. Its elector
// does not lead any more, and says who does.
func TestAStuckElectorSeesTheNextLeader(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, b := f.process("a", leader.Options{}), f.process("b", leader.Options{})
		stop := make(chan struct{})
		a.start(func(_ context.Context, lease *sqllock.Lease) error {
			a.began <- lease
			<-stop
			return nil
		})
		lease := <-a.began
		synctest.Wait()
		f.Must(lease.Unlock(f.Context())) // which a function should not do
		b.start(b.lead)
		<-b.began
		time.Sleep(2 * time.Second)
		wantLeader(f, a, "b")
		if got := a.seen(); len(got) != 3 || got[0] != "me" || got[1] != "-" || got[2] != "b" {
			f.Errorf("OnChange: %q", got)
		}
		close(stop)
		synctest.Wait()
		wantLeader(f, a, "b")
	})
}

// wantLeader checks whom p, which does not lead, has seen lead.
func wantLeader(f *fixture, p *process, client string) {
	f.Helper()
	var not *leader.NotLeaderError
	if err := p.IsLeader(f.Context()); !errors.As(err, &not) || not.Leader.Client != client {
		f.Errorf("%v, want %s", err, client)
	}
}

// TestTheEndOfATermIsReportedAtOnce has the database give no answer: OnChange does not wait for one.
func TestTheEndOfATermIsReportedAtOnce(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, network := f.networked("a")
		a.start(a.lead)
		<-a.began
		synctest.Wait()
		network.Follow(func(ctx context.Context, _ flaky.Moment) error {
			<-ctx.Done()
			return ctx.Err()
		})
		f.Is(<-a.ended, sqllock.ErrLockLost)
		synctest.Wait()
		if got := a.seen(); len(got) != 2 || got[1] != "-" {
			f.Errorf("OnChange: %q", got)
		}
		network.Follow(nil)
	})
}

// TestACandidateReadsAsOftenAsItIsTold counts the reads of a candidate whose database fails when
// the lease of the leader has a millisecond left.
func TestACandidateReadsAsOftenAsItIsTold(t *testing.T) {
	inBubble(t, func(f *fixture) {
		a, network := f.networked("a")
		r := a.registry.Repository()
		f.Must(check.ErrorOf(r.Acquire(f.Context(), role, r.NewHolder(), 2*time.Second+10*time.Millisecond)))
		a.start(a.lead)
		time.Sleep(2*time.Second + time.Millisecond) // it has just read
		network.Follow(func(context.Context, flaky.Moment) error { return errStop })
		const long = 10 * time.Second
		time.Sleep(long)
		if n := network.Count(); n > 100 {
			f.Errorf("%d statements in %v", n, long)
		}
		network.Follow(nil)
	})
}
