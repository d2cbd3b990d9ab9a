package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/fair"
	"github.com/sqllock/sqllock/internal/locktable"
)

// TestStreak_GivenUp has a caller give up while the process steps back: the next one goes on with that.
func TestStreak_GivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const interval = 200 * time.Millisecond
		w := waiter{locks: &Locks{idle: interval}, hold: &hold{Request: Request{}.withKey("k", "k"), locks: new(Locks), locals: []*localLock{new(localLock)}}}
		w.hold.locals[0].share.Released(time.Now().Add(-fair.LongestStreak(interval, false)), true)
		ctx, cancel := context.WithTimeout(t.Context(), interval)
		defer cancel()
		if w.stepBack(ctx) {
			t.Error("it did not step back")
		}
		before := time.Now()
		if !w.stepBack(t.Context()) || time.Since(before) != interval/2 {
			t.Errorf("the next caller has waited for %v", time.Since(before))
		}
	})
}

// TestPace has a waiter poll a row whose holders change, and one whose holder stays. The times are those of package fair.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const (
			interval, rivalInterval    = 200 * time.Millisecond, 100 * time.Millisecond
			halvedAfter, shortestPause = 50 * time.Millisecond, 6 * time.Millisecond
			rivalsKnownFor, youngFor   = 10 * time.Second, time.Second
		)
		w := waiter{locks: &Locks{idle: interval}, hold: &hold{locals: []*localLock{new(localLock)}}, since: time.Now()}
		young, old := locktable.Row{Holder: "b", Age: time.Millisecond}, locktable.Row{Holder: "b", Age: youngFor}
		for i, step := range []struct {
			holder  string
			row     locktable.Row
			changed bool
			after   time.Duration // the last step
			want    time.Duration // 0 is the shortest that the cost of a poll permits
		}{
			{"a", young, false, 0, 0},
			{"a", young, true, 0, rivalInterval}, // Spring's rows have always the same holder
			{"b", young, false, 0, 0},            // the first pause of a wait is short
			{"b", young, true, 0, rivalInterval},
			{"b", young, true, halvedAfter, rivalInterval / 2},
			{"b", young, false, 150 * time.Millisecond, rivalInterval / 5},
			{"b", young, true, time.Second, shortestPause},
			{"b", old, false, 0, 0},
			{"b", old, true, 0, interval},
			{"b", young, false, rivalsKnownFor, 0},
			{"a", young, true, 0, rivalInterval}, // as two of Spring's processes
			{"c", young, true, rivalsKnownFor, shortestPause},
		} {
			time.Sleep(step.after)
			w.hold.locals[0].share.Seen(step.holder)
			if got := w.pace(step.row, step.changed); got.Pause != step.want || got.Longest != interval {
				t.Errorf("step %d: %+v, want a pause of %v", i, got, step.want)
			}
		}
	})
}

// A caller with the turn polls less often the longer the lock is held, whatever the row says of its age: over four columns a
// renewal makes it young again, and that of a minimum hold lies ahead.
func TestTurnPause(t *testing.T) {
	t.Parallel()
	const idle = 100 * time.Millisecond
	w := waiter{locks: &Locks{idle: idle}}
	for _, test := range []struct{ age, seenFor, want time.Duration }{
		{0, 0, shortestTurnPoll},
		{160 * time.Millisecond, 0, 10 * time.Millisecond},
		{time.Hour, 0, idle},
		{time.Millisecond, time.Minute, idle},
		{-time.Hour, 160 * time.Millisecond, 10 * time.Millisecond},
		{-time.Hour, time.Minute, idle},
	} {
		if pause := w.turnPause(locktable.Row{Age: test.age, Left: time.Hour}, test.seenFor, time.Microsecond); pause != test.want {
			t.Errorf("%+v: %v", test, pause)
		}
	}
}
