package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/locktable"
)

// This file has the rule by which processes share a lock. They do not know of each other, and write nothing while they
// wait. So each does by itself what makes them take turns:
//
//   - While the lock changes hands, a waiter polls sooner the longer it has waited: see [pauseAfter]. So the next one
//     is likely to be one that has waited for long.
//   - The callers of a process have the lock one after the other for a limited time, a streak. Then the process steps
//     back. Otherwise the next caller of the process would have the lock in the moment in which the last one releases
//     it, and processes that poll would seldom find it free.
//
// That there are rivals is seen in the row alone: it has another holder than before. A process that has seen none does
// not know whether others wait, so its streaks are longer and cost the lock less; and as those others need not have seen
// the lock change hands, and poll every IdleBetweenTries, it steps back for longer than that.
const (
	// rivalStreak is how long a streak may last among rivals. A shorter one would cost throughput, since the lock is
	// free until a rival polls; with a longer one all wait longer.
	rivalStreak = 100 * time.Millisecond
	// springStreak is the same beside processes of Spring. They do not step back: theirs last until a poll finds the lock
	// free, 0.1 to 0.3 s.
	springStreak = 200 * time.Millisecond
	// rivalInterval limits the interval among rivals: they poll sooner than every IdleBetweenTries if that is longer.
	rivalInterval = 100 * time.Millisecond
	// rivalsFor is for how long after it has seen another one have the lock a process begins a streak among rivals. It
	// steps back in vain if they are gone.
	rivalsFor = time.Second
	// rivalsKnownFor is for how long it expects the lock to change hands soon when it finds it taken, and youngFor is how
	// old the row may be then: waiters for holders that last do not poll sooner.
	rivalsKnownFor, youngFor = 10 * time.Second, time.Second
	// halvedAfter is the wait after which the pause between polls is half of what it was at first.
	halvedAfter = 50 * time.Millisecond
	// shortestPause is the shortest pause between polls.
	shortestPause = 6 * time.Millisecond
	// manyRivals is how many other processes that have the lock again and again make a waiter poll by this rule alone, also
	// where it could know of a release at once: all would know, and try, at the same time.
	manyRivals = 2
)

// pauseAfter is the pause between two polls, while the lock changes hands, of a caller that has waited for a time.
// interval is the registry's IdleBetweenTries.
func pauseAfter(waited, interval time.Duration) time.Duration {
	longest := min(interval, rivalInterval)
	pause := time.Duration(float64(longest) / (1 + float64(waited)/float64(halvedAfter)))
	return max(pause, min(longest, shortestPause))
}

// longestStreak is how long a streak may last if no rival was seen. seldomFree is whether the row is as good as never
// free, because it is handed over, or the next caller of this process waits for nothing else: then no rival can be seen.
func longestStreak(interval time.Duration, seldomFree bool) time.Duration {
	if seldomFree {
		return 10 * interval
	}
	return 100 * interval
}

// stepBack is for how long a process leaves the lock to others: another one polls within the interval, and then needs a
// moment to acquire the lock.
func stepBack(interval time.Duration) time.Duration { return interval + interval/2 }

// A rivals is what a process has seen of others that want the lock of an entry. The zero value has seen none.
type rivals struct{ seen atomic.Pointer[sighting] }

// A sighting is immutable.
type sighting struct {
	holders  []string  // of the row: the last ones, the newest first
	own      string    // the holder of a row that this process has left for a minimum hold; any if it is unknown
	seen     time.Time // when another process had the row
	changed  time.Time // when the row had another holder than before; zero if that was not seen
	returned time.Time // when it had one that had it before another; zero if that was not seen
}

// unknown is an own holder that is not known before the row is read.
const unknown = "?"

// holdersKept is how many holders a sighting has: of so many processes of Spring each is seen to return.
const holdersKept = 16

// last returns what was seen last. Its times are zero, which is long ago, if nothing was.
func (r *rivals) last() sighting {
	if last := r.seen.Load(); last != nil {
		return *last
	}
	return sighting{}
}

// holder returns the holder that the row had last, or "".
func (s *sighting) holder() string {
	switch {
	case len(s.holders) > 0:
		return s.holders[0]
	case s.own == unknown:
		return ""
	default:
		return s.own
	}
}

// note notes the holder of a row that another process has, unless it is this one's that expectOwn has announced.
func (r *rivals) note(holder string) {
	next := r.last()
	switch next.own {
	case unknown, holder:
		next.own, next.holders = holder, nil
	default:
		next.follow(holder, time.Now())
	}
	r.seen.Store(&next)
}

// follow notes in s, which is not shared yet, that another process has the row now.
func (s *sighting) follow(holder string, now time.Time) {
	s.seen = now
	if len(s.holders) > 0 && s.holders[0] == holder {
		return
	}
	if len(s.holders) > 0 {
		s.changed = now
	}
	if slices.Contains(s.holders, holder) {
		s.returned = now
	}
	s.holders = append([]string{holder}, s.holders[:min(len(s.holders), holdersKept-1)]...)
}

// expectOwn has the next holder of the row be no rival: the row of this process stays for a minimum hold, with another
// holder, and its next caller will find it.
func (r *rivals) expectOwn() {
	next := r.last()
	next.own = unknown
	r.seen.Store(&next)
}

// compete reports whether rivals were seen to take turns with this process within the last rivalsKnownFor.
func (r *rivals) compete() bool {
	return time.Since(r.last().changed) < rivalsKnownFor
}

// areMany reports whether manyRivals other processes have had the row again and again.
func (r *rivals) areMany() bool {
	holders := r.last().holders
	if len(holders) < 2*manyRivals {
		return false
	}
	times := make(map[string]int, holdersKept)
	again := 0
	for _, holder := range holders {
		client := locktable.ClientOf(holder)
		if times[client]++; times[client] == 2 {
			again++
		}
	}
	return again >= manyRivals
}

// competed reports whether another process was seen to have the row less than rivalsFor before a time, or since.
func (r *rivals) competed(before time.Time) bool {
	return before.Sub(r.last().seen) < rivalsFor
}

// lookLikeSpring reports whether some of these rivals have one holder for all of their rows, as Spring has: it polls at its
// interval, however long it has waited, and never steps back.
func (r *rivals) lookLikeSpring() bool {
	return time.Since(r.last().returned) < rivalsKnownFor
}

// A streak is immutable.
type streak struct {
	began time.Time // when its first caller had the lock
	left  time.Time // when the lock was last released
}

// A streaks has the streak of an entry, or nil.
type streaks struct{ atomic.Pointer[streak] }

// note notes that the lock is released, by a hold of the streak that began then, unless one is under way.
func (s *streaks) note(began time.Time) {
	if last := s.Load(); last != nil {
		began = last.began
	}
	s.Store(&streak{began, time.Now()})
}

// rest is for how long the process has to step back, before its next caller tries: until pause has passed since the lock was
// released, if the streak has lasted for longest. After that the streak is forgotten.
func (s *streaks) rest(longest, pause time.Duration) time.Duration {
	last := s.Load()
	if last == nil {
		return 0
	}
	rest := pause - time.Since(last.left)
	switch {
	case rest <= 0:
		s.CompareAndSwap(last, nil)
		return 0
	case time.Since(last.began) < longest:
		return 0 // the streak goes on
	default:
		return rest
	}
}

// noteRival notes the holder of a row that another process has: so a streak of this one is over.
func (e *entry) noteRival(holder string) {
	e.rivals.note(holder)
	e.streak.Store(nil)
}

// stepBack lets other processes acquire if the callers of this one have had the lock for long. It returns
// false if ctx ended first.
func (w *waiter) stepBack(ctx context.Context) bool {
	for rest := w.restOfStepBack(); rest > 0; rest = w.restOfStepBack() {
		if !bounded.Sleep(ctx, rest) {
			return false
		}
	}
	return true
}

// restOfStepBack is for how long this process has to leave its locks to others.
func (w *waiter) restOfStepBack() (rest time.Duration) {
	if w.once || w.hold.fair && w.isInOrder() {
		return 0
	}
	for _, e := range w.hold.entries {
		if last := e.streak.Load(); last != nil {
			rest = max(rest, e.streak.rest(w.streakAmong(&e.rivals, last)))
		}
	}
	return rest
}

// streakAmong returns how long the streak may last, and for how long the process then steps back.
func (w *waiter) streakAmong(rivals *rivals, s *streak) (longest, pause time.Duration) {
	interval := w.idle
	if w.waker != nil { // a release wakes the others
		interval = min(interval, rivalInterval)
	}
	if !rivals.competed(s.began) {
		return longestStreak(interval, w.hold.inTurns || w.hold.config.handOff), stepBack(interval)
	}
	longest = rivalStreak
	if rivals.lookLikeSpring() {
		longest = springStreak
	}
	if s.left.Sub(s.began) < youngFor { // else the others have polled an old row
		interval = min(interval, rivalInterval)
	}
	return longest, stepBack(interval)
}

// pace is how the waiter polls: often at first, every IdleBetweenTries if a release would wake it, and among rivals by
// the rule of [pauseAfter]. Rivals that seem to be Spring's are to have as good a chance as this process: if the row has
// changed since the last poll, the next one comes after IdleBetweenTries, as theirs do, or after what that is by default.
func (w *waiter) pace(seen locktable.Row, changed bool) locktable.Pace {
	rivals := &w.hold.entries[w.hold.place(seen)].rivals
	compete := seen.Age < youngFor && rivals.compete()
	p := locktable.Pace{Longest: w.idle, Wake: w.wake, Regardless: compete && rivals.areMany()}
	switch {
	case w.waker != nil, changed && seen.Age >= youngFor:
		p.Pause = w.idle
	case seen.Age >= youngFor:
	case compete && !rivals.lookLikeSpring():
		if pause := pauseAfter(time.Since(w.since), w.idle); changed || pause < locktable.ShortestPoll(w.idle) {
			p.Pause = pause
		}
	case changed:
		p.Pause = min(w.idle, rivalInterval)
	}
	// Otherwise a poll comes before the lease is over. Left may be the longest Duration there is: add nothing to it.
	if seen.Left/locktable.CalmShare < w.idle {
		// A row is expired only after its last microsecond, or millisecond.
		p.Left = seen.Left + time.Millisecond + jitter.N(min(w.idle/20, maxScatter)+1)
	}
	return p
}
