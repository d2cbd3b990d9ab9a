package locktable

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"
)

// Callers that leave the queue, in any order, take no other with them.
func TestCallersLeaveAPoll(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const n = 100
		asked := make(map[string]int)
		p := polls{read: func(_ context.Context, v values) (map[string]Row, error) {
			rows := make(map[string]Row)
			for _, c := range v.rows {
				asked[c.LockKey]++
				rows[c.LockKey] = Row{LockKey: c.LockKey}
			}
			return rows, nil
		}}
		calls := make([]*pollCall, n)
		for i := range calls {
			calls[i] = p.join(Claim{LockKey: fmt.Sprint(i)}, Pace{Longest: time.Minute})
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
		var asked [][]Claim
		underWay := make(chan struct{}, 2)
		p := polls{read: func(_ context.Context, v values) (map[string]Row, error) {
			asked = append(asked, v.rows)
			underWay <- struct{}{}
			time.Sleep(time.Millisecond)
			return nil, errors.New("failed")
		}}
		first := p.join(Claim{LockKey: "first"}, Pace{Longest: time.Second})
		var others []*pollCall
		for i := range 3 {
			others = append(others, p.join(Claim{LockKey: fmt.Sprint(i)}, Pace{Longest: time.Second}))
		}
		<-underWay
		p.leave(first)
		for _, call := range others {
			if a := <-call.answer; !errors.Is(a.err, errRetryAlone) {
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
			p := polls{read: func(context.Context, values) (map[string]Row, error) {
				time.Sleep(cost)
				return nil, nil
			}}
			var polled struct{ soon, seldom int }
			poll := func(n *int, pace Pace) {
				call := p.join(Claim{}, pace)
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
