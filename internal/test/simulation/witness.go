package simulation

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
)

// A witness knows which caller has which lease. There is one clock, and a statement takes effect in
// one instant, so what it finds is exact.
type witness struct {
	world *World

	mu     sync.Mutex
	claims map[*claim]struct{}
	last   map[string]*claim // of each key, the one that was acquired last
	// lastReader has, of each read-write lock, the reader that has come last and was no writer.
	lastReader map[string]*claim
	number     int // of acquisitions

	rows    map[string]lockRow   // by key, when they were last observed
	free    map[string]time.Time // by key, since when no row keeps others out
	written map[string]int64     // by key, the number of the claim that a guarded transaction has written last
	// committed has the numbers that guarded transactions have written.
	committed map[int64]bool
	waiting   map[*wait]struct{}

	// kept has the holders whose rows may stay until they expire: for a minimum hold, or because
	// the lease was lost.
	kept map[string]bool
	// using counts, by holder, the claims whose release has not returned. unused has when the
	// last one has.
	using  map[string]int
	unused map[string]time.Time
	// forced has the holders whose rows were deleted by force, and by when their leases must have
	// ended. Until then others may hold the lock. deletions has the last instants by key.
	forced    map[string]time.Time
	deletions map[string]time.Time
}

func newWitness(w *World) *witness {
	return &witness{
		world: w, claims: make(map[*claim]struct{}), last: make(map[string]*claim), lastReader: make(map[string]*claim),
		rows: make(map[string]lockRow), free: make(map[string]time.Time),
		written: make(map[string]int64), committed: make(map[int64]bool), waiting: make(map[*wait]struct{}),
		kept: make(map[string]bool), using: make(map[string]int), unused: make(map[string]time.Time),
		forced: make(map[string]time.Time), deletions: make(map[string]time.Time),
	}
}

// A claim is a lease that a caller has, and has not begun to give back.
type claim struct {
	process *process
	keys    []string // one, or those of a joint lock
	holder  string
	token   int64
	number  int64
	lease   *sqllock.Lease
	// ended is closed when the lease's context ends. It is asked for once, as by a caller that
	// only selects on it: whenever the context is asked, it looks at the clock.
	ended <-chan struct{}
	since time.Time
	// writer is the claim of the write lease under which a read lease was acquired, or nil.
	writer *claim
	// latest is when the lease ends at the latest because of MaxHold, or zero. It does not count
	// once the caller has renewed the lease itself.
	latest  time.Time
	renewed bool
	// minHoldEnd is until when the rows stay at least, or zero.
	minHoldEnd time.Time
}

// lives reports whether the context of the lease has not ended.
func (c *claim) lives() bool { return !isClosed(c.ended) }

// name is what messages call the keys of a claim.
func (c *claim) name() string { return nameOf(c.keys) }

func nameOf(keys []string) string { return strings.Join(keys, "+") }

// excludes reports whether c and other must not last at the same time: they have a key in common, or
// one is a reader where the other is a writer.
func (c *claim) excludes(other *claim) bool {
	if slices.ContainsFunc(c.keys, func(key string) bool { return slices.Contains(other.keys, key) }) {
		return true
	}
	return c.readsBeside(other) || other.readsBeside(c)
}

// readsBeside reports whether c reads what other, which is not its caller's, may write.
func (c *claim) readsBeside(other *claim) bool {
	lock, ok := c.reads()
	return ok && slices.Contains(other.keys, lock) && c.writer != other
}

// reads returns the key of the read-write lock that c reads.
func (c *claim) reads() (lock string, ok bool) {
	lock, _, ok = strings.Cut(c.keys[0], " reader ")
	return lock, ok
}

// writes returns the rows that guarded transactions of c write.
func (c *claim) writes() []string {
	if lock, ok := c.reads(); ok {
		return []string{lock + readersWrite}
	}
	return c.keys
}

// readersWrite ends the key of the row that all readers of a lock write.
const readersWrite = " readers"

func (c *claim) String() string {
	return fmt.Sprintf("%s (%s, no. %d, token %d)", c.process.id, c.process.world.alias(c.holder), c.number, c.token)
}

// acquired notes a lease that a call that locks has just returned.
func (w *witness) acquired(p *process, lease *sqllock.Lease) *claim {
	return w.acquiredWithin(p, lease, nil)
}

// acquiredWithin is acquired for a read lease that a caller has acquired under a write lease, or has
// exchanged for it, which is nil if there is none.
func (w *witness) acquiredWithin(p *process, lease *sqllock.Lease, writer *claim) *claim {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.number++
	c := &claim{
		process: p, keys: lease.Keys(), holder: lease.Holder(), token: lease.Token(), number: int64(w.number),
		lease: lease, ended: lease.Context().Done(), since: time.Now(), writer: writer,
	}
	if longest := p.plan.Registry.MaxHold; longest > 0 {
		c.latest = later(lease.Deadline(), time.Now().Add(longest))
	}
	w.claims[c] = struct{}{}
	w.overtakes(c)
	w.using[c.holder]++
	w.checkLease(c)
	if w.isForced(c.holder) { // the row is gone, and a hand-over asks no database
		return c
	}
	for other := range w.claims {
		if other != c && other.excludes(c) && other.lives() && c.lives() && !w.isForced(other.holder) {
			w.world.violated("two holders", "%q: %v and %v", c.name(), other, c)
		}
	}
	for _, key := range c.keys {
		w.checkAcquired(c, key)
	}
	if p.plan.Repository.DisableFencing != (c.token == 0) {
		w.world.violated("token", "%q: %v", c.name(), c)
	}
	return c
}

// checkAcquired checks one key of a claim that was just acquired.
func (w *witness) checkAcquired(c *claim, key string) {
	if row := w.rows[key]; row.holder != c.holder && c.lives() {
		w.world.violated("no row", "%q: %v has a lease, and the row is of %q", key, c, w.world.alias(row.holder))
	}
	if before := w.last[key]; before != nil && c.token != 0 && c.token <= before.token {
		w.world.violated("token", "%q: %v after %v", key, c, before)
	}
	w.last[key] = c
	if lock, ok := c.reads(); ok && c.writer == nil {
		w.lastReader[lock] = c
	}
}

func later(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }

// renews notes that a caller is about to renew its lease itself.
func (w *witness) renews(c *claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	c.renewed = true
}

// releases notes that a caller is about to give its lease back.
func (w *witness) releases(c *claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkLease(c)
	delete(w.claims, c)
}

// released notes that the release of a claim has returned.
func (w *witness) released(c *claim) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.using[c.holder]--; w.using[c.holder] == 0 {
		delete(w.using, c.holder)
	}
	w.unused[c.holder] = time.Now()
}

// died notes that a process has died: its callers have no leases any more.
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

// keepsOwn is keeps for the rows of keys that are of a client.
func (w *witness) keepsOwn(keys []string, client string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, key := range keys {
		if holder := w.rows[key].holder; clientOf(holder) == client {
			w.kept[holder] = true
		}
	}
}

// check checks all leases.
func (w *witness) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.checkLeases()
}

func (w *witness) checkLeases() {
	for c := range w.claims {
		w.checkLease(c)
	}
}

// checkLease checks that a lease does not last for longer than its row, which others may take then,
// and that it has ended when it must have: at its Deadline, a while after its row was deleted by
// force, and when MaxHold has passed.
func (w *witness) checkLease(c *claim) {
	if c.process.isDead() || !c.lives() {
		return
	}
	deadline := c.lease.Deadline()
	for _, key := range c.keys {
		if row := w.rows[key]; row.holder == c.holder && row.end.Before(deadline) {
			w.world.violated("outlives", "%q: the lease of %v lasts until %v, its row until %v", key, c,
				deadline.Sub(w.world.history.began), row.end.Sub(w.world.history.began))
		}
	}
	switch limit := w.forced[c.holder]; {
	case time.Since(deadline) > time.Millisecond:
		w.world.violated("late end", "%q: the lease of %v has ended %v ago, and its context has not", c.name(), c, time.Since(deadline))
	case !limit.IsZero() && time.Now().After(limit):
		w.world.violated("unnoticed", "%q: the row of %v is gone, and its context has not ended", c.name(), c)
	case !c.latest.IsZero() && !c.renewed && deadline.After(c.latest):
		w.world.violated("maximum hold", "%q: the lease of %v lasts %v too long", c.name(), c, deadline.Sub(c.latest))
	}
}

// force notes that the row of a key was deleted by force. No renewal finds it any more, but one
// whose answer is under way may have prolonged the lease before.
func (w *witness) force(row lockRow) {
	limit := time.Now().Add(w.world.plan.LongestTTL())
	for c := range w.claims {
		if c.holder == row.holder {
			limit = later(limit, c.lease.Deadline())
		}
	}
	w.forced[row.holder], w.deletions[row.key] = limit, time.Now()
}

// isForced reports whether the row of a holder was deleted by force, and its lease may still last.
func (w *witness) isForced(holder string) bool {
	limit := w.forced[holder]
	return !limit.IsZero() && !time.Now().After(limit)
}
