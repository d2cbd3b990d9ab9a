package engine

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
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
	// rivalInterval limits the interval among rivals: they poll sooner than every IdleBetweenTries if that is longer.
	rivalInterval = 100 * time.Millisecond
	// rivalsFor is for how long a process steps back for rivals after it has seen the lock change hands. It does so in
	// vain if they are gone.
	rivalsFor = time.Second
	// rivalsKnownFor is for how long it expects the lock to change hands soon when it finds it taken, and youngFor is how
	// old the row may be then: waiters for holders that last do not poll sooner.
	rivalsKnownFor, youngFor = 10 * time.Second, time.Second
	// halvedAfter is the wait after which the pause between polls is half of what it was at first.
	halvedAfter = 50 * time.Millisecond
	// shortestPause is the shortest pause between polls.
	shortestPause = 6 * time.Millisecond
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
	changed  time.Time // when the row had another holder than before; zero if that was not seen
	returned time.Time // when it had one that had it before another; zero if that was not seen
}

// holdersKept is how many holders a sighting has: of so many processes of Spring each is seen to return.
const holdersKept = 16

// note notes the holder of a row that another process has.
func (r *rivals) note(holder string) {
	last := r.seen.Load()
	if last == nil {
		last = new(sighting)
	}
	if len(last.holders) == 0 || last.holders[0] != holder {
		r.seen.Store(last.followedBy(holder, time.Now()))
	}
}

// followedBy returns what was seen once the row has another holder.
func (s *sighting) followedBy(holder string, now time.Time) *sighting {
	next := &sighting{holders: append([]string{holder}, s.holders[:min(len(s.holders), holdersKept-1)]...), returned: s.returned}
	if len(s.holders) > 0 {
		next.changed = now
	}
	if slices.Contains(s.holders, holder) {
		next.returned = now
	}
	return next
}

// noteOwn notes a holder of this process whose row stays for a minimum hold: the next caller of the process will find it.
func (r *rivals) noteOwn(holder string) {
	own := sighting{holders: []string{holder}}
	if last := r.seen.Load(); last != nil {
		own.changed, own.returned = last.changed, last.returned
	}
	r.seen.Store(&own)
}

// compete reports whether rivals were seen to take turns with this process within a time.
func (r *rivals) compete(within time.Duration) bool {
	last := r.seen.Load()
	return last != nil && !last.changed.IsZero() && time.Since(last.changed) < within
}

// areSprings reports whether some of these rivals have one holder for all of their rows, as Spring has: it polls at its
// interval, however long it has waited.
func (r *rivals) areSprings() bool {
	last := r.seen.Load()
	return last != nil && !last.returned.IsZero() && time.Since(last.returned) < rivalsKnownFor
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

// end waits, before the next caller of this process tries, until the process has stepped back for that long, if the streak
// has lasted for longest. It returns false if ctx ended first.
func (s *streaks) end(ctx context.Context, longest, stepBack time.Duration) bool {
	last := s.Load()
	if last == nil {
		return true
	}
	rest := stepBack - time.Since(last.left)
	if rest > 0 && time.Since(last.began) < longest {
		return true // the streak goes on
	}
	slept := bounded.Sleep(ctx, max(0, rest))
	if slept {
		s.CompareAndSwap(last, nil)
	}
	return slept
}

// noteRival notes the holder of a row that another process has: so a streak of this one is over.
func (e *entry) noteRival(holder string) {
	e.rivals.note(holder)
	e.streak.Store(nil)
}

// noteStreaks notes that the callers of this process have had the lock until now, if others wait for it, or may.
func (h *hold) noteStreaks() {
	for i := range h.count() {
		if h.minHold > 0 {
			h.entryAt(i).rivals.noteOwn(h.term.holder)
		}
		if e := h.entryAt(i); h.inTurns || e.mutex.Waiters() > 0 || e.rivals.compete(rivalsFor) {
			e.streak.note(h.term.since)
		}
	}
}

// isSeldomFree is that of longestStreak.
func (h *hold) isSeldomFree() bool { return h.inTurns || h.config.handOff }

// stepBack lets other processes acquire if the callers of this one have had the lock for long. It returns
// false if ctx ended first.
func (w *waiter) stepBack(ctx context.Context) bool {
	for i := range w.hold.count() {
		e := w.hold.entryAt(i)
		longest, pause := longestStreak(w.idle, w.hold.isSeldomFree()), stepBack(w.idle)
		if e.rivals.compete(rivalsFor) {
			longest, pause = rivalStreak, stepBack(min(w.idle, rivalInterval))
		}
		if !e.streak.end(ctx, longest, pause) {
			return false
		}
	}
	return true
}
