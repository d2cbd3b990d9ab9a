package engine

import (
	"context"
	"testing"
	"testing/synctest"
	"time"
)

// TestStreak_AProcessStepsBack has callers have the lock one after the other for longer than a streak may last.
func TestStreak_AProcessStepsBack(t *testing.T) {
	t.Parallel()
	const longest, pause = 2 * time.Second, 300 * time.Millisecond
	synctest.Test(t, func(t *testing.T) {
		var s streaks
		hold := func() (waited time.Duration) {
			before := time.Now()
			if !s.end(t.Context(), longest, pause) {
				t.Fatal("the context has ended")
			}
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
		if steps != 4 {
			t.Errorf("%d steps back", steps)
		}
		for range 100 { // others have had the time to acquire the lock: there is no streak
			time.Sleep(pause)
			if waited := hold(); waited != 0 {
				t.Errorf("it has waited for %v", waited)
			}
		}
	})
}

// TestStreak_GivenUp has a caller give up while the process steps back: the next one goes on with that.
func TestStreak_GivenUp(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const interval = 200 * time.Millisecond
		var s streaks
		const longest = 10 * interval
		s.note(time.Now().Add(-longest))
		ctx, cancel := context.WithTimeout(t.Context(), interval)
		defer cancel()
		if s.end(ctx, longest, stepBack(interval)) {
			t.Error("it did not step back")
		}
		before := time.Now()
		if !s.end(t.Context(), longest, stepBack(interval)) || time.Since(before) != stepBack(interval)-interval {
			t.Errorf("the next caller has waited for %v", time.Since(before))
		}
	})
}
