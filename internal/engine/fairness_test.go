package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/test/check"
)

// TestStreak_AProcessStepsBack has callers have the lock one after the other for longer than a streak may last.
func TestStreak_AProcessStepsBack(t *testing.T) {
	t.Parallel()
	const longest, pause = 2 * time.Second, 300 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var s streaks
		hold := func() (waited time.Duration) {
			before := time.Now()
			time.Sleep(s.rest(longest, pause))
			_ = s.rest(longest, pause) // the streak is forgotten
			acquired := time.Now()
			time.Sleep(100 * time.Millisecond)
			s.note(acquired)
			return acquired.Sub(before)
		}
		began, steps := time.Now(), 0
		for range 100 {
			before := time.Now()
			switch waited := hold(); waited {
			case 0:
			case pause:
				steps++
				if streak := before.Sub(began); streak < longest || streak > longest+100*time.Millisecond {
					t.Errorf("a streak of %v", streak)
				}
				began = before.Add(pause)
			default:
				t.Errorf("it has waited for %v", waited)
			}
		}
		check.Equal(t, "steps back", steps, 4)
		for range 100 { // others have had the time to acquire the lock: there is no streak
			time.Sleep(pause)
			check.Equal(t, "it has waited for", hold(), 0)
		}
	})
}

// TestStreak_GivenUp has a caller give up while the process steps back: the next one goes on with that.
func TestStreak_GivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const interval = 200 * time.Millisecond
		w := waiter{Locks: &Locks{idle: interval}, hold: &hold{Request: Request{lockKey: "k"}, config: new(holdConfig), entries: []*entry{new(entry)}}}
		w.hold.entries[0].streak.note(time.Now().Add(-longestStreak(interval, false)))
		ctx, cancel := context.WithTimeout(t.Context(), interval)
		defer cancel()
		if w.stepBack(ctx) {
			t.Error("it did not step back")
		}
		before := time.Now()
		if !w.stepBack(t.Context()) || time.Since(before) != stepBack(interval)-interval {
			t.Errorf("the next caller has waited for %v", time.Since(before))
		}
	})
}

// TestPace has a waiter poll a row whose holders change, and one whose holder stays.
func TestPace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const interval = 200 * time.Millisecond
		w := waiter{Locks: &Locks{idle: interval}, hold: &hold{entries: []*entry{new(entry)}}, since: time.Now()}
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
			w.hold.entries[0].noteRival(step.holder)
			if got := w.pace(step.row, step.changed); got.Pause != step.want || got.Longest != interval {
				t.Errorf("step %d: %+v, want a pause of %v", i, got, step.want)
			}
		}
	})
}

// TestRivals_EndAStreak has a process find that another one has the lock.
func TestRivals_EndAStreak(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := waiter{Locks: &Locks{idle: time.Second}, hold: &hold{Request: Request{lockKey: "k"}, config: new(holdConfig), entries: []*entry{new(entry)}}}
		steps := func(streak, want time.Duration) {
			t.Helper()
			w.hold.entries[0].streak.Store(nil)
			w.hold.entries[0].streak.note(time.Now().Add(-streak))
			before := time.Now()
			if !w.stepBack(t.Context()) || time.Since(before) != want {
				t.Errorf("after %v: stepped back for %v, want %v", streak, time.Since(before), want)
			}
		}
		steps(99*time.Second, 0) // none is known
		steps(100*time.Second, 1500*time.Millisecond)
		for _, holder := range []string{"own 1", "own 2"} { // with a minimum hold, after which the next caller finds the row
			w.hold.entries[0].rivals.expectOwn()
			w.hold.entries[0].noteRival(holder)
		}
		steps(rivalStreak, 0)
		w.hold.entries[0].streak.note(time.Now())
		w.hold.entries[0].noteRival("a")
		w.hold.entries[0].noteRival("b")
		if w.hold.entries[0].streak.Load() != nil {
			t.Error("the streak goes on")
		}
		steps(rivalStreak-time.Millisecond, 0)
		steps(rivalStreak, 150*time.Millisecond)
		time.Sleep(rivalsFor)
		steps(rivalsFor-time.Millisecond, 150*time.Millisecond) // it began among rivals
		time.Sleep(rivalsFor)
		steps(rivalStreak, 0)
		w.hold.entries[0].noteRival("c")
		time.Sleep(youngFor)
		steps(youngFor, 1500*time.Millisecond) // the others poll an old row seldom
		w.waker = neverWakes{}
		w.hold.entries[0].noteRival("d")
		steps(youngFor, 150*time.Millisecond)
		w.hold.entries[0].noteRival("c") // it comes back, as Spring's do, which do not step back
		steps(springStreak-time.Millisecond, 0)
		w.hold.entries[0].noteRival("d")
		steps(springStreak, 150*time.Millisecond)
		time.Sleep(2 * rivalsFor)
		steps(10*time.Second, 150*time.Millisecond)
	})
}

// A neverWakes is a [waker] without notifications.
type neverWakes struct{}

func (neverWakes) Watch(string) (<-chan struct{}, func()) { return nil, func() {} }
