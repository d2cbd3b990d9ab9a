package simulation

import (
	"slices"
	"time"
)

// A wait is a caller that waits for one key or several.
type wait struct {
	process *process
	keys    []string
	since   time.Time
	longer  time.Duration // than patience, until the rows that it needs beside these have expired
	// overtaken is how often callers of other processes have had one of the keys meanwhile.
	overtaken int
}

// waits notes a caller that begins to wait.
func (w *witness) waits(p *process, keys []string, longer time.Duration) *wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	waits := &wait{process: p, keys: keys, since: time.Now(), longer: longer}
	w.waiting[waits] = struct{}{}
	return waits
}

// ends notes that a caller waits no more.
func (w *witness) ends(waits *wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, waits)
}

// mostOvertaken is how often callers of other processes may have a key, in a contended world, while one waits for it: for
// each caller of its own process, which may be before it. A process has the lock for 100 ms, that is about four times in a
// row, and then each of the others, of which there are five at most, has a chance to be the next. To be overtaken 75 times
// the caller must lose nineteen times, against odds that grow with its wait.
const mostOvertaken = 75

// overtakes counts what an acquisition is for those who wait.
func (w *witness) overtakes(c *claim) {
	if w.world.plan.Shape != Contended {
		return
	}
	for waits := range w.waiting {
		if waits.process == c.process || !slices.ContainsFunc(waits.keys, func(key string) bool { return slices.Contains(c.keys, key) }) {
			continue
		}
		waits.overtaken++
		if most := mostOvertaken * len(waits.keys) * waits.process.plan.Workers; waits.overtaken > most {
			w.world.violated("overtaken", "%s has waited for %q for %v, and others have had it %d times", waits.process.id, waits.keys,
				time.Since(waits.since), waits.overtaken)
		}
	}
}

// patience is how long a waiter may overlook that a lock is free, beyond IdleBetweenTries.
const patience = 5 * time.Second

// overlooked finds callers that have waited for a while for a lock that was free all the time.
func (w *witness) overlooked(since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for waits := range w.waiting {
		free := w.allFree(waits.keys)
		from := later(later(free, waits.since), since)
		if !free.IsZero() && time.Since(from) > patience+waits.longer+waits.process.plan.Registry.IdleBetweenTries {
			w.world.violated("overlooked", "%s has waited for %q for %v, which has been free for %v", waits.process.id, waits.keys,
				time.Since(waits.since), time.Since(free))
		}
	}
}

// allFree returns since when no row keeps others out of any of keys, or from when on none will.
func (w *witness) allFree(keys []string) (since time.Time) {
	for _, key := range keys {
		since = later(since, w.free[key])
	}
	return since
}
