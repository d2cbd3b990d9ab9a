// Package reentrant is the in-process half of a lock: a mutex that its owner
// may enter again, that hands itself on in the order of arrival, and that a
// waiter can give up at any moment.
package reentrant

import (
	"container/list"
	"context"
	"sync"
)

// A Mutex is owned by a value of type O, not by a goroutine: Go hides the
// goroutine, and work is passed between goroutines freely. The zero value of
// Mutex is unlocked; the zero value of O is nobody.
//
// Leaving and releasing are two steps, because the owner has something to undo
// in between (a row to delete) while nobody else may come in:
//
//	Lock, TryLock   become the owner, or enter once more    depth + 1
//	Leave           give one entry back                     depth - 1
//	Release         stop being the owner, at any depth      next waiter owns
//
// All methods are safe for concurrent use.
type Mutex[O comparable] struct {
	mu      sync.Mutex
	owner   O
	depth   int
	waiters *list.List // of *waiter[O]; front is the next owner. It is nil if there are none
}

type waiter[O comparable] struct {
	owner  O
	ready  chan struct{} // closed when owner owns the mutex
	passed bool          // by Pass
}

// Lock makes o the owner, waiting behind those who came before, and returns the
// depth: 1, or more if o owned the mutex already. On failure it returns
// ctx.Err() and leaves the mutex unchanged. If ctx is done already, Lock may
// not succeed, even where it would not have to wait; but a caller to whom the mutex
// was passed (see Pass) owns it, whatever has become of ctx.
func (m *Mutex[O]) Lock(ctx context.Context, o O) (int, error) {
	// Prefer to fail: a caller that was cancelled has no use for the mutex.
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	m.mu.Lock()
	if depth, ok := m.enterLocked(o); ok {
		m.mu.Unlock()
		return depth, nil
	}
	w := &waiter[O]{owner: o, ready: make(chan struct{})}
	if m.waiters == nil {
		m.waiters = list.New()
	}
	place := m.waiters.PushBack(w)
	m.mu.Unlock()

	select {
	case <-w.ready:
		// Both may be ready: a grant must not hide a cancellation.
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
		// Became the owner after the cancellation: pass it on.
		m.handOnLocked()
	default:
		m.removeLocked(place)
	}
	return 0, ctx.Err()
}

// TryLock is Lock without waiting: ok is false if another owner has the mutex
// or others wait for it.
func (m *Mutex[O]) TryLock(o O) (depth int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.enterLocked(o)
}

// Enter enters a mutex that o owns once more. ok is false if o does not own it
// or has left it for the last time.
func (m *Mutex[O]) Enter(o O) (depth int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owner != o || m.depth == 0 {
		return 0, false
	}
	m.depth++
	return m.depth, true
}

// Leave gives one entry back and returns how many are left. At 0 the owner
// still has the mutex, cannot enter it again, and must call Release. ok is false
// if o is not the owner or has left for the last time already.
func (m *Mutex[O]) Leave(o O) (depth int, ok bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owner != o || m.depth == 0 {
		return 0, false
	}
	m.depth--
	return m.depth, true
}

// Release takes the mutex from o, whatever the depth, and gives it to the next
// waiter. It returns false, and does nothing, if o is not the owner.
func (m *Mutex[O]) Release(o O) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.owner != o {
		return false
	}
	m.handOnLocked()
	return true
}

// Pass is Release for an owner that has something to give to the next one along
// with the mutex. accept is asked whether the first waiter may have it, and sees to it
// that it does, before that one knows. If there is no waiter, or accept says no, or o is
// not the owner, Pass does nothing and returns false. accept must not use the mutex.
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

// Owner returns who owns the mutex, or the zero value.
func (m *Mutex[O]) Owner() O {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.owner
}

// Waiters returns how many wait for the mutex.
func (m *Mutex[O]) Waiters() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.waiters == nil {
		return 0
	}
	return m.waiters.Len()
}

func (m *Mutex[O]) enterLocked(o O) (int, bool) {
	var nobody O
	switch {
	case m.owner == o && m.depth > 0:
		m.depth++
	case m.owner == nobody:
		// Nobody waits either: Release never leaves the mutex unowned while
		// somebody does.
		m.owner, m.depth = o, 1
	default:
		return 0, false
	}
	return m.depth, true
}

// handOnLocked makes the first waiter the owner, or nobody.
func (m *Mutex[O]) handOnLocked() {
	var nobody O
	m.owner, m.depth = nobody, 0
	if m.waiters == nil {
		return
	}
	next := m.removeLocked(m.waiters.Front())
	m.owner, m.depth = next.owner, 1
	close(next.ready)
}

// removeLocked removes a waiter from the queue.
func (m *Mutex[O]) removeLocked(place *list.Element) *waiter[O] {
	w := m.waiters.Remove(place).(*waiter[O])
	if m.waiters.Len() == 0 {
		m.waiters = nil
	}
	return w
}
