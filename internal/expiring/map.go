// Package expiring has a map that forgets.
package expiring

import (
	"container/list"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Most is how many keys a [Map] keeps at most.
const Most = 1 << 16

// A Map keeps a value for each key until a time that is given with it. Of more keys than
// [Most] it forgets the one that was put in first.
//
// No method but Keys reads all entries. They are kept in the order in which they were
// put in, and those that are over are removed from its beginning. So the memory of an
// entry is freed soon after its time if all last equally long, and otherwise after
// those that were put in before it.
//
// The zero value is an empty map. All methods are safe for concurrent use.
type Map[K comparable, V any] struct {
	count atomic.Int64 // so that an empty map costs no lock

	mu      sync.Mutex
	entries map[K]*list.Element
	order   list.List // of *entry, in the order of Put
}

type entry[K comparable, V any] struct {
	key   K
	value V
	until time.Time
}

// Put makes the value of key what change returns, which is given the value before, or
// the zero value. It lasts until then, or longer if the value before did.
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
	if len(m.entries) > Most {
		m.removeLocked(m.first().key)
	}
}

// Get returns the value of key. ok is false if there is none or its time is over.
func (m *Map[K, V]) Get(key K) (value V, ok bool) {
	if m.count.Load() == 0 {
		return value, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.countLocked()
	m.purgeLocked()
	place, ok := m.entries[key]
	if !ok {
		return value, false
	}
	e := place.Value.(*entry[K, V])
	if e.over(time.Now()) {
		return value, false
	}
	return e.value, true
}

// Take is Get, and removes the key.
func (m *Map[K, V]) Take(key K) (value V, ok bool) {
	if m.count.Load() == 0 {
		return value, false
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.countLocked()
	m.purgeLocked()
	e, ok := m.removeLocked(key)
	if !ok || e.over(time.Now()) {
		return value, false
	}
	return e.value, true
}

// Keys returns the keys whose time is not over, in no particular order.
func (m *Map[K, V]) Keys() []K {
	m.mu.Lock()
	defer m.mu.Unlock()
	defer m.countLocked()
	m.purgeLocked()
	now := time.Now()
	return slices.DeleteFunc(slices.Collect(maps.Keys(m.entries)), func(key K) bool {
		return m.entries[key].Value.(*entry[K, V]).over(now)
	})
}

// Len returns how many keys are kept, including those that are over and not removed yet.
func (m *Map[K, V]) Len() int { return int(m.count.Load()) }

// purgeLocked removes the first entries as long as their time is over.
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

// countLocked also frees a map that is empty: deleting its keys does not.
func (m *Map[K, V]) countLocked() {
	if len(m.entries) == 0 {
		m.entries = nil
	}
	m.count.Store(int64(len(m.entries)))
}

func (e *entry[K, V]) over(now time.Time) bool { return !now.Before(e.until) }
