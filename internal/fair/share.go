package fair

import (
	"slices"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/clientid"
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

// LongestStreak is how long a streak may last if no rival was seen. seldomFree is whether the row is as good as never
// free, because it is handed over, or the next caller of this process waits for nothing else: then no rival can be seen.
func LongestStreak(interval time.Duration, seldomFree bool) time.Duration {
	if seldomFree {
		return 10 * interval
	}
	return 100 * interval
}

// stepBack is for how long a process leaves the lock to others: another one polls within the interval, and then needs a
// moment to acquire the lock.
func stepBack(interval time.Duration) time.Duration { return interval + interval/2 }

// A Share is what a process knows of how it shares one lock with others: what it has seen of them, and its own streak. The
// zero value has seen none, and has no streak. All methods are safe for concurrent use.
type Share struct {
	seen   atomic.Pointer[sighting] // or nil
	streak atomic.Pointer[streak]   // or nil
}

// Seen notes the holder of a row that another process has, unless it is this one's that ExpectOwn has announced. So a streak of
// this process is over.
func (s *Share) Seen(holder string) {
	next := s.lastSighting()
	switch next.own {
	case unknown, holder:
		next.own, next.holders = holder, nil
	default:
		next.follow(holder, time.Now())
	}
	s.seen.Store(&next)
	s.streak.Store(nil)
}

// ExpectOwn announces that the next holder of the row is no rival: the row of this process stays for a minimum hold, with
// another holder, and its next caller will find it.
func (s *Share) ExpectOwn() {
	next := s.lastSighting()
	next.own = unknown
	s.seen.Store(&next)
}

// LastHolder returns the holder that the row had when it was last seen, or "".
func (s *Share) LastHolder() string {
	last := s.lastSighting()
	return last.holder()
}

// Released notes that this process releases the lock, which it has had since a time, if others wait for it, or may: a
// caller that has had it for long may ask for it again at once. isWanted says that callers of this process wait for it.
func (s *Share) Released(since time.Time, isWanted bool) {
	if !isWanted && time.Since(since) < rivalStreak && (s.seen.Load() == nil || !s.competed(since)) {
		return
	}
	if last := s.streak.Load(); last != nil { // it goes on
		since = last.began
	}
	s.streak.Store(&streak{since, time.Now()})
}

// Rest is for how long this process has to leave the lock to others, if its streak has lasted for long, before its next caller
// tries: until they have had the time to acquire it, since it was released. After that the streak is forgotten. interval is
// the registry's IdleBetweenTries; if wakes is true, a release wakes the others. For seldomFree see [LongestStreak].
func (s *Share) Rest(interval time.Duration, wakes, seldomFree bool) time.Duration {
	last := s.streak.Load()
	if last == nil {
		return 0
	}
	longest, pause := s.limits(last, interval, wakes, seldomFree)
	rest := pause - time.Since(last.left)
	switch {
	case rest <= 0:
		s.streak.CompareAndSwap(last, nil)
		return 0
	case time.Since(last.began) < longest:
		return 0 // the streak goes on
	default:
		return rest
	}
}

// limits returns how long a streak may last, and for how long the process then steps back.
func (s *Share) limits(of *streak, interval time.Duration, wakes, seldomFree bool) (longest, pause time.Duration) {
	if wakes {
		interval = min(interval, rivalInterval)
	}
	if !s.competed(of.began) {
		return LongestStreak(interval, seldomFree), stepBack(interval)
	}
	longest = rivalStreak
	if s.lookLikeSpring() {
		longest = springStreak
	}
	if of.left.Sub(of.began) < youngFor { // else the others have polled an old row
		interval = min(interval, rivalInterval)
	}
	return longest, stepBack(interval)
}

// IsAmongMany reports whether a row of that age changes hands among many rivals.
func (s *Share) IsAmongMany(age time.Duration) bool {
	return age < youngFor && s.compete() && s.areMany()
}

// Pause is the pause before the next poll, by a caller that has waited for a time, of a row of that age. changed is whether
// it has another holder than at the last poll, or was acquired anew. It is 0 if the caller is to poll as if there were no
// rivals. amongMany is what IsAmongMany returns.
//
// Rivals that seem to be Spring's are to have as good a chance as this process: if the row has changed since the last
// poll, the next one comes after IdleBetweenTries, as theirs do, or after what that is by default.
func (s *Share) Pause(waited, interval, age time.Duration, changed bool) (pause time.Duration, amongMany bool) {
	compete := age < youngFor && s.compete()
	switch {
	case compete && !s.lookLikeSpring():
		pause = pauseAfter(waited, interval)
	case changed && age < youngFor:
		pause = min(interval, rivalInterval)
	case changed:
		pause = interval
	}
	return pause, compete && s.areMany()
}

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

// lastSighting returns what was seen last. Its times are zero, which is long ago, if nothing was.
func (s *Share) lastSighting() sighting {
	if last := s.seen.Load(); last != nil {
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

// compete reports whether rivals were seen to take turns with this process within the last rivalsKnownFor.
func (s *Share) compete() bool {
	return time.Since(s.lastSighting().changed) < rivalsKnownFor
}

// areMany reports whether manyRivals other processes have had the row again and again.
func (s *Share) areMany() bool {
	holders := s.lastSighting().holders
	if len(holders) < 2*manyRivals {
		return false
	}
	times := make(map[string]int, holdersKept)
	again := 0
	for _, holder := range holders {
		client := clientid.Of(holder)
		if times[client]++; times[client] == 2 {
			again++
		}
	}
	return again >= manyRivals
}

// competed reports whether another process was seen to have the row less than rivalsFor before a time, or since.
func (s *Share) competed(before time.Time) bool {
	return before.Sub(s.lastSighting().seen) < rivalsFor
}

// lookLikeSpring reports whether some of these rivals have one holder for all of their rows, as Spring has: it polls at its
// interval, however long it has waited, and never steps back.
func (s *Share) lookLikeSpring() bool {
	return time.Since(s.lastSighting().returned) < rivalsKnownFor
}

// A streak is immutable.
type streak struct {
	began time.Time // when its first caller had the lock
	left  time.Time // when the lock was last released
}
