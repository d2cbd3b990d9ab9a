package fair

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
)

// TestStreak_AProcessStepsBack has callers have the lock one after the other for longer than a streak may last.
func TestStreak_AProcessStepsBack(t *testing.T) {
	t.Parallel()
	const interval = 200 * time.Millisecond
	longest, pause := LongestStreak(interval, true), stepBack(interval)
	synctest.Test(t, func(t *testing.T) {
		var s Share
		hold := func() (waited time.Duration) {
			before := time.Now()
			time.Sleep(s.Rest(interval, false, true))
			_ = s.Rest(interval, false, true) // the streak is forgotten
			acquired := time.Now()
			time.Sleep(100 * time.Millisecond)
			s.Released(acquired, true)
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

// TestRivals_EndAStreak has a process find that another one has the lock.
func TestRivals_EndAStreak(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var s Share
		wakes := false
		steps := func(streak, want time.Duration) {
			t.Helper()
			s.streak.Store(nil)
			s.Released(time.Now().Add(-streak), true)
			rest := s.Rest(time.Second, wakes, false)
			if time.Sleep(rest); rest != want || s.Rest(time.Second, wakes, false) != 0 {
				t.Errorf("after %v: stepped back for %v, want %v", streak, rest, want)
			}
		}
		steps(99*time.Second, 0) // none is known
		steps(100*time.Second, 1500*time.Millisecond)
		for _, holder := range []string{"own 1", "own 2"} { // with a minimum hold, after which the next caller finds the row
			s.ExpectOwn()
			s.Seen(holder)
		}
		steps(rivalStreak, 0)
		s.Released(time.Now(), true)
		s.Seen("a")
		s.Seen("b")
		if s.streak.Load() != nil {
			t.Error("the streak goes on")
		}
		steps(rivalStreak-time.Millisecond, 0)
		steps(rivalStreak, 150*time.Millisecond)
		time.Sleep(rivalsFor)
		steps(rivalsFor-time.Millisecond, 150*time.Millisecond) // it began among rivals
		time.Sleep(rivalsFor)
		steps(rivalStreak, 0)
		s.Seen("c")
		time.Sleep(youngFor)
		steps(youngFor, 1500*time.Millisecond) // the others poll an old row seldom
		wakes = true
		s.Seen("d")
		steps(youngFor, 150*time.Millisecond)
		s.Seen("c") // it comes back, as Spring's do, which do not step back
		steps(springStreak-time.Millisecond, 0)
		s.Seen("d")
		steps(springStreak, 150*time.Millisecond)
		time.Sleep(2 * rivalsFor)
		steps(10*time.Second, 150*time.Millisecond)
	})
}
