package simulation

import (
	"time"
)

// A wait is a caller that waits for one key or several.
type wait struct {
	process *process
	keys    []string
	since   time.Time
	longer  time.Duration // than patience, until the rows that it needs beside these have expired
}

// waits notes a caller that begins to wait.
func (w *witness) waits(p *process, keys []string, longer time.Duration) *wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	waits := &wait{p, keys, time.Now(), longer}
	w.waiting[waits] = struct{}{}
	return waits
}

// ends notes that a caller waits no more.
func (w *witness) ends(waits *wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, waits)
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
