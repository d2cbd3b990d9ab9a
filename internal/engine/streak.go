package engine

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
)

// A streak is the time in which the callers of this process have a lock one after the other. After longestStreak the
// process steps back, for stepBack: without that, another process, which polls the row, could wait for ever. Both are
// multiples of the interval at which other processes poll: a fixed time would be too short for those that poll seldom.
//
// The values are immutable.
type streak struct {
	began time.Time // when its first caller had the lock
	left  time.Time // when the lock was last released
}

// longestStreak is how long a streak may last. interval is the registry's IdleBetweenTries.
func longestStreak(interval time.Duration) time.Duration { return 10 * interval }

// stepBack is for how long a process leaves the lock to others: another one polls within the interval, and then needs a
// moment to acquire the lock.
func stepBack(interval time.Duration) time.Duration { return interval + interval/2 }

// A streaks has the streak of an entry, or nil.
type streaks struct{ atomic.Pointer[streak] }

// note notes that the lock is released, by a hold of the streak that began then, unless one is under way.
func (s *streaks) note(began time.Time) {
	if last := s.Load(); last != nil {
		began = last.began
	}
	s.Store(&streak{began, time.Now()})
}

// end waits, before the next caller of this process tries, until the process has stepped back, if the streak was too long.
// It returns false if ctx ended first.
func (s *streaks) end(ctx context.Context, interval time.Duration) bool {
	last := s.Load()
	if last == nil {
		return true
	}
	rest := stepBack(interval) - time.Since(last.left)
	if rest > 0 && time.Since(last.began) < longestStreak(interval) {
		return true // the streak goes on
	}
	slept := bounded.Sleep(ctx, max(0, rest))
	if slept {
		s.CompareAndSwap(last, nil)
	}
	return slept
}
