// Package expiring provides a map whose entries expire.
package expiring

import (
	"container/list"
	"sync"
	"sync/atomic"
	"time"
)

// MaxKeys is the maximum number of keys of a [Map].
const MaxKeys = 1 << 16

// A Map stores a value for each key until a given time. If there are more than [MaxKeys] keys, it removes the entry
// that was put in first.
//
// Only Keys reads all entries. Expired entries are removed from the front of a list in the order of Put. So if all
// entries last equally long, the memory of an entry is freed soon after it has expired; otherwise it is freed after
// all entries that were put in before it.
//
// The zero value is an empty map. All methods are safe for concurrent use.
type Map[K comparable, V any] struct {
	count atomic.Int64 // so that an empty map needs no mutex

	mu      sync.Mutex
	entries map[K]*list.Element
	order   list.List // of *entry, in the order of Put
}

type entry[K comparable, V any] struct {
	key   K
	value V
	until time.Time
}

// Put sets the value of key to the result of change, which is called with the previous value or the zero value. The
// entry lasts until the given time, or longer if the previous value did.
func (m *Map[K, V]) Put(key K, until time.Time, change func(V) V) {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.countLocked()
	m.purgeLocked()
	var before entry[K, V]
	if e, ok := m.removeLocked(key); ok && !e.over(time.Now()) {
		before = *e
	}
	if m.entries == nil {
		m.entries = make(map[K]*list.Element)
	}
	if before.until.After(until) {
		until = before.until
	}
	m.entries[key] = m.order.PushBack(&entry[K, V]{key, change(before.value), until})
	if len(m.entries) > MaxKeys {
		m.removeLocked(m.first().key)
	}
}

// Get returns the value of key. ok is false if there is none or it has expired.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	if m.count.Load() == 0 {
		return value, false
	}
	return m.get(key, false)
}

// Take returns the value of key as Get does, and removes it.
func (m *Map[K, V]) Take(key K) (value V, ok bool) { return m.get(key, true) }

func (m *Map[K, V]) get(key K, remove bool) (value V, ok bool) {
	if m.count.Load() == 0 {
		return value, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.countLocked()
	m.purgeLocked()
	if place, there := m.entries[key]; there {
		if e := place.Value.(*entry[K, V]); !e.over(time.Now()) {
			value, ok = e.value, true
		}
	}
	if remove {
		m.removeLocked(key)
	}
	return value, ok
}

// Keys returns the keys that have not expired, in the order of Put.
func (m *Map[K, V]) Keys() []K {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.countLocked()
	m.purgeLocked()
	now := time.Now()
	var keys []K
	for e := m.order.Front(); e != nil; e = e.Next() {
		if one := e.Value.(*entry[K, V]); !one.over(now) {
			keys = append(keys, one.key)
		}
	}
	return keys
}

// Len returns the number of entries, including expired ones that are not removed yet.
func (m *Map[K, V]) Len() int { return int(m.count.Load()) }

// purgeLocked removes expired entries from the front of the list.
func (m *Map[K, V]) purgeLocked() {
	if m.order.Len() == 0 {
		return
	}
	for now := time.Now(); m.order.Len() > 0 && m.first().over(now); {
		m.removeLocked(m.first().key)
	}
}

func (m *Map[K, V]) first() *entry[K, V] { return m.order.Front().Value.(*entry[K, V]) }

func (m *Map[K, V]) removeLocked(key K) (*entry[K, V], bool) {
	place, ok := m.entries[key]
	if !ok {
		return nil, false
	}
	delete(m.entries, key)
	return m.order.Remove(place).(*entry[K, V]), true
}

// countLocked updates count. It also frees an empty map: deleting its keys does not.
func (m *Map[K, V]) countLocked() {
	if len(m.entries) == 0 {
		m.entries = nil
	}
	m.count.Store(int64(len(m.entries)))
}

func (e *entry[K, V]) over(now time.Time) bool { return !now.Before(e.until) }
