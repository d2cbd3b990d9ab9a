package simulation

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
)

// A witness knows who believes to hold which lock. There is one clock, and a statement takes
// effect in one instant, so what it finds is exact.
type witness struct {
	world *World

	mu      sync.Mutex
	claims  map[*claim]struct{}
	last    map[string]*claim // of each key, the one that was acquired last
	number  int               // of acquisitions
	row     map[string]string // the holder of each key's row when it was last observed
	written map[string]int64  // the number of the claim that has written last, in a guarded transaction
	// committed has the key of each number that a guarded transaction has written.
	committed map[int64]string
	waiting   map[*wait]struct{}
	free      map[string]time.Time // since when no row keeps others out
	kept      map[string]bool      // holders whose rows may stay for a minimum hold, or are lost
	// robbed has the holders whose rows were deleted by force, and by when they must have noticed.
	// Until then others may hold the lock.
	robbed map[string]time.Time
}

// A claim is a caller's belief to hold a lock: a lease that it has and has not begun to
// give back.
type claim struct {
	process *process
	key     string
	holder  string
	token   int64
	number  int64
	lease   *sqllock.Lease
}

// A wait is a caller that waits for a lock.
type wait struct {
	process *process
	key     string
	since   time.Time
}

func newWitness(w *World) *witness {
	return &witness{
		world: w, claims: make(map[*claim]struct{}), last: make(map[string]*claim), row: make(map[string]string),
		written: make(map[string]int64), committed: make(map[int64]string), waiting: make(map[*wait]struct{}), free: make(map[string]time.Time), kept: make(map[string]bool), robbed: make(map[string]time.Time),
	}
}

// lives reports whether the caller still believes.
func (c *claim) lives() bool { return c.lease.Context().Err() == nil }

// context returns the context of the lease, or nil.
func (c *claim) context() context.Context {
	if c == nil {
		return nil
	}
	return c.lease.Context()
}

func (c *claim) String() string {
	return fmt.Sprintf("%s (%s, no. %d, token %d)", c.process.name(), c.process.world.alias(c.holder), c.number, c.token)
}

// acquired notes a lease that a call that locks has just returned.
func (w *witness) acquired(p *process, lease *sqllock.Lease) *claim {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number++
	c := &claim{process: p, key: lease.Key(), holder: lease.Holder(), token: lease.Token(), number: int64(w.number), lease: lease}
	if w.isRobbed(c.holder) { // it was handed over, which asks no database
		return c
	}
	for other := range w.claims {
		if other.key == c.key && other.lives() && c.lives() && !w.isRobbed(other.holder) {
			w.world.violated("two holders", "%q: %v and %v", c.key, other, c)
		}
	}
	if before := w.last[c.key]; before != nil && c.token != 0 && c.token <= before.token {
		w.world.violated("token", "%q: %v after %v", c.key, c, before)
	}
	if p.plan.Repository.DisableFencing != (c.token == 0) {
		w.world.violated("token", "%q: %v", c.key, c)
	}
	w.last[c.key] = c
	w.claims[c] = struct{}{}
	return c
}

// released notes that the caller does not believe any more, before it gives the lease back.
func (w *witness) released(c *claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.claims, c)
}

// died notes that a process has died: it believes nothing.
func (w *witness) died(p *process) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.claims {
		if c.process == p {
			delete(w.claims, c)
		}
	}
	for waits := range w.waiting {
		if waits.process == p {
			delete(w.waiting, waits)
		}
	}
}

// keeps notes that the row of a holder may stay until it expires: for a minimum hold, or after
// the lease was lost.
func (w *witness) keeps(holder string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.kept[holder] = true
}

// A lockRow is a row of the lock table.
type lockRow struct {
	key, holder string
	end         time.Time
}

// observed compares the tables with what callers believe, after a change. forced is the
// key whose row was deleted by force. It returns the keys whose rows have gone.
func (w *witness) observed(rows []lockRow, written map[string]int64, by, forced string) (deleted []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	now := make(map[string]string, len(rows))
	for _, row := range rows {
		now[row.key] = row.holder
	}
	for key, before := range w.row {
		if now[key] == before {
			continue
		}
		if key == forced {
			w.rob(before)
		} else {
			w.checkTaken(key, before, now[key], by)
		}
		if w.kept[before] && clientOf(before) == clientOf(now[key]) {
			w.kept[now[key]] = true // the minimum hold goes on under another holder
		}
		if now[key] == "" {
			deleted = append(deleted, key)
		}
	}
	slices.Sort(deleted)
	w.row = now
	for key, number := range written {
		if number == w.written[key] {
			continue
		}
		if last := w.last[key]; last == nil || number != last.number {
			w.world.violated("late write", "%q: %s commits the guarded write of no. %d, while %v has been given the lock", key, by, number, last)
		}
		w.written[key], w.committed[number] = number, key
	}
	w.checkEnds(rows)
	w.noteFree(rows)
	return deleted
}

// rob notes that the row of a holder was deleted by force. No renewal finds it any more, but one
// whose answer is under way may have prolonged it before.
func (w *witness) rob(holder string) {
	limit := time.Now().Add(w.world.plan.LongestTTL())
	for c := range w.claims {
		if deadline := c.lease.Deadline(); c.holder == holder && deadline.After(limit) {
			limit = deadline
		}
	}
	w.robbed[holder] = limit
}

func (w *witness) isRobbed(holder string) bool { return !w.robbed[holder].IsZero() }

// unnoticed finds callers that believe in a row that was deleted by force long ago.
func (w *witness) unnoticed() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for c := range w.claims {
		if limit := w.robbed[c.holder]; w.isRobbed(c.holder) && time.Now().After(limit) && c.lives() {
			w.world.violated("unnoticed", "%q: the row of %v is gone, and its context has not ended", c.key, c)
		}
	}
}

// checkEnds finds callers whose leases last for longer than their rows, which others may
// take when they have expired.
func (w *witness) checkEnds(rows []lockRow) {
	for c := range w.claims {
		for _, row := range rows {
			if row.key == c.key && row.holder == c.holder && row.end.Before(c.lease.Deadline()) && c.lives() {
				w.world.violated("outlives", "%q: the lease of %v lasts until %v, its row until %v", c.key, c,
					c.lease.Deadline().Sub(w.world.history.began), row.end.Sub(w.world.history.began))
			}
		}
	}
}

// wrote reports whether a guarded transaction of an acquisition was committed.
func (w *witness) wrote(key string, number int64) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.committed[number] == key
}

// checkTaken finds callers that believe in a row that has gone.
func (w *witness) checkTaken(key, holder, next, by string) {
	for c := range w.claims {
		if c.key == key && c.holder == holder && c.lives() && !w.isRobbed(holder) {
			w.world.violated("taken", "%q: %s has changed the row of %v, whose context has not ended, to %q", key, by, c, w.world.alias(next))
		}
	}
}

// noteFree notes since when each key is free, or from when on it will be.
func (w *witness) noteFree(rows []lockRow) {
	taken := make(map[string]time.Time, len(rows))
	for _, row := range rows {
		taken[row.key] = row.end
	}
	for _, key := range w.world.keys {
		end, ok := taken[key]
		switch {
		case ok:
			w.free[key] = end
		case w.free[key].IsZero() || w.free[key].After(time.Now()):
			w.free[key] = time.Now()
		}
	}
}

// waits notes a caller that begins to wait.
func (w *witness) waits(p *process, key string) *wait {
	w.mu.Lock()
	defer w.mu.Unlock()
	waits := &wait{p, key, time.Now()}
	w.waiting[waits] = struct{}{}
	return waits
}

// ends notes that a caller waits no more.
func (w *witness) ends(waits *wait) {
	w.mu.Lock()
	defer w.mu.Unlock()
	delete(w.waiting, waits)
}

// overlooked finds callers that have waited for a while for a lock that was free all the time.
func (w *witness) overlooked(since time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for waits := range w.waiting {
		free, from := w.free[waits.key], waits.since
		if free.After(from) {
			from = free
		}
		if since.After(from) {
			from = since
		}
		if !free.IsZero() && time.Since(from) > patience+waits.process.plan.Registry.IdleBetweenTries {
			w.world.violated("overlooked", "%s has waited for %q for %v, which has been free for %v", waits.process.name(), waits.key,
				time.Since(waits.since), time.Since(free))
		}
	}
}

// leftBehind returns the holders of rows of a process that nothing explains.
func (w *witness) leftBehind(client string) (holders []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for key, holder := range w.row {
		if clientOf(holder) == client && !w.kept[holder] && w.free[key].After(time.Now()) {
			holders = append(holders, holder)
		}
	}
	return holders
}
