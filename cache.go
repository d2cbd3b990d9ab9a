package sqllock

import (
	"container/list"
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/reentrant"
)

// An entry is the state that all handles of one LOCK_KEY share in a registry.
type entry struct {
	lock  JdbcLock // what Obtain returns for the key as it was first written
	mutex reentrant.Mutex[*hold]
	// stepBack is until when this process leaves the lock to others, or nil. It is kept
	// as a Time for its monotonic clock.
	stepBack atomic.Pointer[time.Time]

	// takenUntil is when the lease may end that an attempt has found. Only the owner of
	// mutex knows it.
	takenUntil time.Time

	// The rest is guarded by the registry's mutex.
	users    int           // callers that hold the lock or wait for it
	place    *list.Element // in cache.idle, or nil while there are users
	lastUsed time.Duration // since cache.began
}

// A cache keeps the entries of a registry, at most capacity of them unless more
// are in use. An entry with users is not among those that can be evicted, so
// that a held lock stays is no rule to be kept but a matter of where it stands.
// It is not safe for concurrent use.
type cache struct {
	capacity int
	began    time.Time
	entries  map[string]*entry // by LOCK_KEY
	idle     list.List         // of *entry without users, the longest unused first
}

// get returns the entry of a LOCK_KEY as the most recently used, or nil.
func (c *cache) get(lockKey string) *entry {
	e := c.entries[lockKey]
	if e != nil && e.place != nil {
		c.touch(e)
	}
	return e
}

// add adds an entry without users, evicting idle ones if the cache is full. It
// returns false, and adds nothing, if all others are in use.
func (c *cache) add(e *entry) bool {
	c.evictTo(c.capacity - 1)
	if len(c.entries) >= c.capacity {
		return false
	}
	c.entries[e.lock.lockKey] = e
	c.rest(e)
	return true
}

// pin counts a user of e.
func (c *cache) pin(e *entry) {
	e.users++
	if e.place != nil {
		c.idle.Remove(e.place)
		e.place = nil
	}
}

// unpin takes back one pin.
func (c *cache) unpin(e *entry) {
	e.users--
	if e.users > 0 {
		return
	}
	c.rest(e)
	c.evictTo(c.capacity)
}

// rest makes e the last of those without users.
func (c *cache) rest(e *entry) {
	e.place = c.idle.PushBack(e)
	e.lastUsed = time.Since(c.began)
}

// evictTo evicts idle entries, the longest unused first, until at most n entries
// are left or all are in use.
func (c *cache) evictTo(n int) {
	for len(c.entries) > n && c.idle.Len() > 0 {
		c.evict(c.idle.Front().Value.(*entry))
	}
}

// evictUnusedSince evicts idle entries that were last used at or before t.
func (c *cache) evictUnusedSince(t time.Time) (evicted int) {
	for front := c.idle.Front(); front != nil; front = c.idle.Front() {
		e := front.Value.(*entry)
		if e.lastUsed > t.Sub(c.began) {
			break
		}
		c.evict(e)
		evicted++
	}
	return evicted
}

func (c *cache) evict(e *entry) {
	c.idle.Remove(e.place)
	e.place = nil
	delete(c.entries, e.lock.lockKey)
}

func (c *cache) touch(e *entry) {
	c.idle.MoveToBack(e.place)
	e.lastUsed = time.Since(c.began)
}
