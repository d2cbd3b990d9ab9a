// Package reentrant provides the in-process part of a lock: a mutex that its owner can enter
// again, that is granted in the order of arrival, and for which a waiter can stop waiting at
// any time.
package reentrant

import (
	"container/list"
	"context"
	"sync"
)

// A Mutex is owned by a value of type O, not by a goroutine: goroutines have no identity in
// Go, and work moves freely between them. The zero value of Mutex is unlocked; the zero
// value of O means no owner.
//
// Leaving and releasing are two steps. Between them the owner can clean up (delete a row)
// while no other caller can acquire the mutex:
//
//	Lock, TryLock   acquire the mutex, or enter it again   depth + 1
//	Leave           leave it once                          depth - 1
//	Release         release it, at any depth               the next waiter acquires it
//
// All methods are safe for concurrent use.
type Mutex[O comparable] struct {
	mu      sync.Mutex
	owner   O
	depth   int
	waiters *list.List // of *waiter[O], the next owner first; nil if there are none
}

type waiter[O comparable] struct {
	owner  O
	ready  chan struct{} // closed when owner has acquired the mutex
	passed bool          // Pass has granted the mutex
	first  bool          // it waits before those that are not
}

// Lock acquires the mutex for o, after all earlier waiters, and returns the depth: 1, or more
// if o owned the mutex already.
//
// If ctx ends first, or has ended already, Lock returns ctx.Err() and leaves the mutex
// unchanged. There is one exception: if the mutex was granted by [Mutex.Pass], Lock succeeds
// even if ctx has ended.
func (m *Mutex[O]) Lock(ctx context.Context, o O) (int, error) { return m.lock(ctx, o, false) }

// LockFirst is Lock for an owner whose turn has come before and who has let others pass: it waits
// before all those that have called Lock, and after those that have called LockFirst.
func (m *Mutex[O]) LockFirst(ctx context.Context, o O) (int, error) { return m.lock(ctx, o, true) }

func (m *Mutex[O]) lock(ctx context.Context, o O, first bool) (int, error) {
	// Fail even if the mutex is free: a cancelled caller does not need it.
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	if depth, ok := m.enterLocked(o); ok {
		m.mu.Unlock()
		return depth, nil
	}
	w := &waiter[O]{owner: o, ready: make(chan struct{}), first: first}
	place := m.queueLocked(w)
	m.mu.Unlock()

	select {
	case <-w.ready:
		// ctx may have ended at the same time: the cancellation takes precedence.
		if err := ctx.Err(); err != nil && !w.passed {
			m.Release(o)
			return 0, err
		}
		return 1, nil
	case <-ctx.Done():
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	select {
	case <-w.ready:
		if w.passed {
			return 1, nil
		}
		// Acquired after the cancellation: grant it to the next waiter.
		m.handOnLocked()
	default:
		m.removeLocked(place)
	}
	return 0, ctx.Err()
}

// TryLock is Lock without waiting. ok is false if another owner holds the mutex or others
// wait for it.
func (m *Mutex[O]) TryLock(o O) (depth int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.enterLocked(o)
}

// Enter enters the mutex again if o owns it. ok is false if o does not own it or has left
// it for the last time.
func (m *Mutex[O]) Enter(o O) (depth int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owner != o || m.depth == 0 {
		return 0, false
	}
	m.depth++
	return m.depth, true
}

// Leave leaves the mutex once and returns the remaining depth. At depth 0 the owner still
// holds the mutex, cannot enter it again, and must call Release. ok is false if o is not
// the owner or has left for the last time already.
func (m *Mutex[O]) Leave(o O) (depth int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owner != o || m.depth == 0 {
		return 0, false
	}
	m.depth--
	return m.depth, true
}

// Release releases the mutex at any depth and grants it to the next waiter. If o is not
// the owner, it does nothing and returns false.
func (m *Mutex[O]) Release(o O) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owner != o {
		return false
	}
	m.handOnLocked()
	return true
}

// Pass releases the mutex as Release does, for an owner that hands something on to the next
// owner. It calls accept with the first waiter before that waiter's Lock returns. If accept
// returns true, it has handed on what there is, and Pass grants the mutex to the waiter.
//
// If there is no waiter, or accept returns false, or o is not the owner, Pass does nothing
// and returns false. accept must not use the mutex.
func (m *Mutex[O]) Pass(o O, accept func(next O) bool) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owner != o || m.waiters == nil {
		return false
	}
	front := m.waiters.Front()
	next := front.Value.(*waiter[O])
	if !accept(next.owner) {
		return false
	}
	next.passed = true
	m.handOnLocked()
	return true
}

// Owner returns the owner of the mutex, or the zero value.
func (m *Mutex[O]) Owner() O {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owner
}

// Waiters returns the number of waiters.
func (m *Mutex[O]) Waiters() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiters == nil {
		return 0
	}
	return m.waiters.Len()
}

func (m *Mutex[O]) enterLocked(o O) (int, bool) {
	var none O
	switch {
	case m.owner == o && m.depth > 0:
		m.depth++
	case m.owner == none:
		// There are no waiters either: Release grants the mutex to a waiter if there
		// is one.
		m.owner, m.depth = o, 1
	default:
		return 0, false
	}
	return m.depth, true
}

// handOnLocked grants the mutex to the first waiter, or leaves it without an owner.
func (m *Mutex[O]) handOnLocked() {
	var none O
	m.owner, m.depth = none, 0
	if m.waiters == nil {
		return
	}
	next := m.removeLocked(m.waiters.Front())
	m.owner, m.depth = next.owner, 1
	close(next.ready)
}

// queueLocked puts a waiter into the queue.
func (m *Mutex[O]) queueLocked(w *waiter[O]) (place *list.Element) {
	if m.waiters == nil {
		m.waiters = list.New()
	}
	if w.first {
		for e := m.waiters.Front(); e != nil; e = e.Next() {
			if !e.Value.(*waiter[O]).first {
				return m.waiters.InsertBefore(w, e)
			}
		}
	}
	return m.waiters.PushBack(w)
}

// removeLocked removes a waiter from the queue.
func (m *Mutex[O]) removeLocked(place *list.Element) *waiter[O] {
	w := m.waiters.Remove(place).(*waiter[O])
	if m.waiters.Len() == 0 {
		m.waiters = nil
	}
	return w
}
