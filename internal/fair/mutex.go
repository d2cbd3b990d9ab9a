// Package fair has what makes callers that want one lock take turns. Within a process, [Mutex] is granted in the order of
// arrival, and a waiter can stop waiting at any time. Between processes, [Share] is the rule by which each leaves the lock to
// others that it does not know.
package fair

import (
	"container/list"
	"context"
	"sync"
)

// A Mutex is owned by a value of type O, not by a goroutine: goroutines have no identity in
// Go, and work moves freely between them. The zero value of Mutex is unlocked; the zero
// value of O means no owner.
//
// An owner must not lock it again: it would wait for itself. All methods are safe for concurrent use.
type Mutex[O comparable] struct {
	mu      sync.Mutex
	owner   O
	waiters *list.List // of *waiter[O], the next owner first; nil if there are none
}

type waiter[O comparable] struct {
	owner  O
	ready  chan struct{} // closed when the mutex is granted
	passed bool          // by Pass
	first  bool          // it waits before those that are not
}

// Lock acquires the mutex for o, after all earlier waiters.
//
// If ctx ends first, or has ended already, Lock returns ctx.Err() and leaves the mutex
// unchanged. There is one exception: if the mutex was granted by [Mutex.Pass], Lock succeeds
// even if ctx has ended.
func (m *Mutex[O]) Lock(ctx context.Context, o O) error { return m.lock(ctx, o, false) }

// LockFirst is Lock for an owner whose turn has come before and who has let others pass: it waits
// before all those that have called Lock, and after those that have called LockFirst.
func (m *Mutex[O]) LockFirst(ctx context.Context, o O) error { return m.lock(ctx, o, true) }

func (m *Mutex[O]) lock(ctx context.Context, o O, first bool) error {
	// Fail even if the mutex is free: a cancelled caller does not need it.
	if err := ctx.Err(); err != nil {
		return err
	}
	m.mu.Lock()
	if m.tryLocked(o) {
		m.mu.Unlock()
		return nil
	}
	w := &waiter[O]{owner: o, ready: make(chan struct{}), first: first}
	place := m.queueLocked(w)
	m.mu.Unlock()

	select {
	case <-w.ready:
		// ctx may have ended at the same time: the cancellation takes precedence.
		if err := ctx.Err(); err != nil && !w.passed {
			m.Release(o)
			return err
		}
		return nil
	case <-ctx.Done():
	}

	m.mu.Lock()
	defer m.mu.Unlock()
	if w.passed {
		m.mu.Unlock()
		<-w.ready // soon
		m.mu.Lock()
		return nil
	}
	select {
	case <-w.ready:
		// Acquired after the cancellation: grant it to the next waiter.
		m.handOnLocked()
	default:
		m.removeLocked(place)
	}
	return ctx.Err()
}

// TryLock is Lock without waiting. It returns false if the mutex has an owner.
func (m *Mutex[O]) TryLock(o O) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.tryLocked(o)
}

// Release releases the mutex and grants it to the next waiter. If o is not
// the owner, it does nothing and returns false.
func (m *Mutex[O]) Release(o O) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owner != o {
		return false
	}
	if m.waiters != nil {
		m.handOnLocked()
	} else {
		m.owner = *new(O)
	}
	return true
}

// Pass releases the mutex as Release does, for an owner that hands something on to the next
// owner. It calls accept with the first waiter. If accept returns true, it has handed on what there is, the waiter is the
// owner, and its Lock returns once grant is called.
//
// If there is no waiter, or accept returns false, or o is not the owner, Pass does nothing
// and returns nil. accept is called with the mutex of m held: it must not use m, nor call what may do so.
func (m *Mutex[O]) Pass(o O, accept func(next O) bool) (grant func()) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owner != o || m.waiters == nil {
		return nil
	}
	front := m.waiters.Front()
	next := front.Value.(*waiter[O])
	if !accept(next.owner) {
		return nil
	}
	next.passed = true
	m.removeLocked(front)
	m.owner = next.owner
	return func() { close(next.ready) }
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

// tryLocked acquires the mutex for o if it has no owner. Then there are no waiters either: Release
// grants the mutex to a waiter if there is one.
func (m *Mutex[O]) tryLocked(o O) bool {
	var none O
	if m.owner != none {
		return false
	}
	m.owner = o
	return true
}

// handOnLocked grants the mutex to the first waiter, or leaves it without an owner.
func (m *Mutex[O]) handOnLocked() {
	var none O
	m.owner = none
	if m.waiters == nil {
		return
	}
	next := m.removeLocked(m.waiters.Front())
	m.owner = next.owner
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
