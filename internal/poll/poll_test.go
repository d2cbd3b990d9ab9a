package poll

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/stmt"
)

// Callers that leave the queue, in any order, take no other with them.
func TestCallersLeaveAPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		asked := make(map[string]int)
		p := Poller{reads: Reads{Many: func(_ context.Context, v stmt.Values) (map[string]stmt.Row, error) {
			rows := make(map[string]stmt.Row)
			for _, c := range v.Rows {
				asked[c.LockKey]++
				rows[c.LockKey] = stmt.Row{LockKey: c.LockKey}
			}
			return rows, nil
		}}}
		calls := make([]*pollCall, n)
		for i := range calls {
			calls[i] = p.join(stmt.Claim{LockKey: fmt.Sprint(i)}, Pace{Longest: time.Minute})
		}
		left := func(i int) bool { return i%3 == 0 || i > n-5 }
		for i := range n {
			if i = (i * 37) % n; left(i) {
				p.leave(calls[i])
			}
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		for i, call := range calls {
			key := fmt.Sprint(i)
			if left(i) {
				if asked[key] != 0 {
					t.Errorf("%s was asked for", key)
				}
				continue
			}
			if a := <-call.answer; a.err != nil || a.row.LockKey != key || asked[key] != 1 {
				t.Errorf("%s: %+v, asked for %d times", key, a, asked[key])
			}
			p.leave(call)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if len(p.queue) != 0 || !p.armed.IsZero() || p.round != nil {
			t.Errorf("%d in the queue, the next poll at %v", len(p.queue), p.armed)
		}
	})
}

// A caller that leaves while its poll is under way is not asked for again if the poll fails.
func TestACallerLeavesAPollThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked [][]stmt.Claim
		underWay := make(chan struct{}, 2)
		p := Poller{reads: Reads{Many: func(_ context.Context, v stmt.Values) (map[string]stmt.Row, error) {
			asked = append(asked, v.Rows)
			underWay <- struct{}{}
			time.Sleep(time.Millisecond)
			return nil, errors.New("failed")
		}}}
		first := p.join(stmt.Claim{LockKey: "first"}, Pace{Longest: time.Second})
		var others []*pollCall
		for i := range 3 {
			others = append(others, p.join(stmt.Claim{LockKey: fmt.Sprint(i)}, Pace{Longest: time.Second}))
		}
		<-underWay
		p.leave(first)
		for _, call := range others {
			if a := <-call.answer; !errors.Is(a.err, errAlone) {
				t.Errorf("%+v", a)
			}
			p.leave(call)
		}
		synctest.Wait()
		if len(asked) != 2 || len(asked[0]) != 4 || len(asked[1]) != 3 {
			t.Errorf("polls for %v", asked)
		}
	})
}

// TestASoonPollWaitsForNoOther has a caller ask for a short pause, beside one that polls seldom. If polls cost much, the
// pause is longer.
func TestASoonPollWaitsForNoOther(t *testing.T) {
	t.Parallel()
	for cost, want := range map[time.Duration]int{0: 125, 5 * time.Millisecond: 20} {
		synctest.Test(t, func(t *testing.T) {
			p := Poller{reads: Reads{Many: func(context.Context, stmt.Values) (map[string]stmt.Row, error) {
				time.Sleep(cost)
				return nil, nil
			}}}
			var polled struct{ soon, seldom int }
			poll := func(n *int, pace Pace) {
				call := p.join(stmt.Claim{}, pace)
				defer p.leave(call)
				if a := <-call.answer; a.round != nil { // it was due alone
					time.Sleep(cost)
					p.end(a.round, news{})
				}
				*n++
			}
			began := time.Now()
			done := make(chan struct{})
			go func() {
				defer close(done)
				for time.Since(began) < time.Second {
					poll(&polled.seldom, Pace{Longest: time.Second})
				}
			}()
			for time.Since(began) < time.Second {
				poll(&polled.soon, Pace{Longest: time.Second, Pause: 8 * time.Millisecond})
			}
			<-done
			if n := polled.soon; n < want || n > want*5/4+5 || polled.seldom > 6 {
				t.Errorf("a poll costs %v: %+v", cost, polled)
			}
		})
	}
}

// Waiters that are to hurry poll at once, also if their poll is under way. A ring that is lost, or is for another row, leaves
// later polls where they would be: none comes later than without.
func TestHurriedPolls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var asked []time.Duration
		began := time.Now()
		p := Poller{}
		hurry := func() { p.Hurry([]string{"k"}) }
		pace := Pace{Longest: 100 * time.Millisecond, Pause: 100 * time.Millisecond}
		poll := func() {
			call := p.join(stmt.Claim{LockKey: "k"}, pace)
			a := <-call.answer
			asked = append(asked, time.Since(began))
			time.Sleep(time.Millisecond)
			p.end(a.round, news{})
			p.leave(call)
		}
		time.AfterFunc(30*time.Millisecond, hurry)
		poll()
		time.AfterFunc(500*time.Microsecond, hurry) // while the next poll is not due: it comes at once
		poll()
		hurried := fmt.Sprint(asked)
		if asked[0] != 30*time.Millisecond || asked[1] != 31500*time.Microsecond {
			t.Errorf("polls after %s", hurried)
		}
		poll()
		if pause := asked[2] - asked[1]; pause > pace.Longest+time.Millisecond || pause < pace.Longest/2 {
			t.Errorf("%v from the last hurried poll to the next one", pause)
		}

		call := p.join(stmt.Claim{LockKey: "k"}, pace) // a ring while the poll is under way: it may have read too early
		a := <-call.answer
		time.Sleep(time.Millisecond)
		hurry()
		time.Sleep(time.Millisecond)
		p.end(a.round, news{})
		p.leave(call)
		asked, began = nil, time.Now()
		poll()
		if asked[0] > time.Millisecond {
			t.Errorf("once more after %v", asked[0])
		}

		time.AfterFunc(10*time.Millisecond, func() { p.Hurry([]string{"other"}) })
		asked, began = nil, time.Now()
		poll()
		if asked[0] < pace.Longest/2 {
			t.Errorf("released was another lock: polled after %v", asked[0])
		}

		pace.Regardless = true
		time.AfterFunc(10*time.Millisecond, hurry)
		asked, began = nil, time.Now()
		poll()
		if asked[0] < pace.Longest/2 {
			t.Errorf("regardless of releases: polled after %v", asked[0])
		}
	})
}

// A caller that leaves as its poll begins ends that: the other callers do not wait for its answer.
func TestCallerLeavesAsItsPollBegins(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var p Poller
		call := p.join(stmt.Claim{LockKey: "k"}, Pace{Longest: time.Minute})
		p.timer.Stop() // what it does is done here
		time.Sleep(time.Minute)
		if round := p.begin(); round == nil {
			t.Fatal("no poll is due")
		}
		p.leave(call)
		if p.round != nil {
			t.Error("the poll goes on")
		}
	})
}
