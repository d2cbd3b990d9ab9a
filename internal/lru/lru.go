// Package lru has a cache that evicts the least recently used of its unused values.
package lru

import "time"

// A Cache keeps a value for each key. It keeps at most as many as its capacity, unless
// more are in use: a value that is in use is not in the list from which values are
// evicted. The zero value of Cache has no room; see [New]. A Cache is not safe for
// concurrent use.
type Cache[K comparable, V any] struct {
	capacity int
	created  time.Time
	items    map[K]*item[K, V]
	unused   item[K, V] // the root of a ring of items that are not in use; next is the least recently used
}

type item[K comparable, V any] struct {
	value      V
	key        K
	uses       int
	lastUsed   time.Duration // since Cache.created
	prev, next *item[K, V]   // in the ring of unused items, or nil while it is in use
}

// New returns an empty cache.
func New[K comparable, V any](capacity int) *Cache[K, V] {
	c := &Cache[K, V]{capacity: capacity, created: time.Now(), items: make(map[K]*item[K, V])}
	c.unused.prev, c.unused.next = &c.unused, &c.unused
	return c
}

// Capacity returns how many values the cache keeps.
func (c *Cache[K, V]) Capacity() int { return c.capacity }

// Len returns how many values there are.
func (c *Cache[K, V]) Len() int { return len(c.items) }

// Get returns the value of key, which counts as a use, or nil if there is none.
func (c *Cache[K, V]) Get(key K) *V {
	i := c.items[key]
	if i == nil {
		return nil
	}
	if i.uses == 0 {
		i.unlink()
		c.link(i)
	}
	return &i.value
}

// Add adds the zero value for key, which must not be there, and returns it. If the cache
// is full, Add evicts unused values. If all values are in use it adds nothing and
// returns nil.
func (c *Cache[K, V]) Add(key K) *V {
	c.evictTo(c.capacity - 1)
	if len(c.items) >= c.capacity {
		return nil
	}
	i := &item[K, V]{key: key}
	c.items[key] = i
	c.link(i)
	return &i.value
}

// Retain marks the value of key as in use, until Drop has been called as often, and returns it. It returns nil if there is
// none.
func (c *Cache[K, V]) Retain(key K) *V {
	i := c.items[key]
	if i == nil {
		return nil
	}
	if i.uses == 0 {
		i.unlink()
	}
	i.uses++
	return &i.value
}

// Drop takes back one Retain. A value that is unused then may be evicted, at once if there
// are more values than the capacity.
func (c *Cache[K, V]) Drop(key K) {
	i := c.items[key]
	i.uses--
	if i.uses == 0 {
		c.link(i)
		if len(c.items) > c.capacity {
			c.evictTo(c.capacity)
		}
	}
}

// SetCapacity changes the capacity. If there are more values, unused ones are evicted at
// once and others when they fall out of use.
func (c *Cache[K, V]) SetCapacity(capacity int) {
	c.capacity = capacity
	c.evictTo(capacity)
}

// EvictUnusedSince evicts the unused values that were last used at t or before, and
// returns how many there were.
func (c *Cache[K, V]) EvictUnusedSince(t time.Time) (evicted int) {
	for limit := t.Sub(c.created); c.hasUnused() && c.unused.next.lastUsed <= limit; evicted++ {
		c.evict()
	}
	return evicted
}

// evictTo evicts unused values until n are left or all are in use.
func (c *Cache[K, V]) evictTo(n int) {
	for len(c.items) > n && c.hasUnused() {
		c.evict()
	}
}

// evict removes the least recently used of the unused values.
func (c *Cache[K, V]) evict() {
	i := c.unused.next
	i.unlink()
	delete(c.items, i.key)
}

func (c *Cache[K, V]) hasUnused() bool { return c.unused.next != &c.unused }

// link makes i the most recently used of the unused items.
func (c *Cache[K, V]) link(i *item[K, V]) {
	i.lastUsed = time.Since(c.created)
	i.prev, i.next = c.unused.prev, &c.unused
	i.prev.next, i.next.prev = i, i
}

func (i *item[K, V]) unlink() {
	i.prev.next, i.next.prev = i.next, i.prev
	i.prev, i.next = nil, nil
}
