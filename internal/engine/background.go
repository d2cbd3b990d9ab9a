package engine

import (
	"context"
	"sync"

	"github.com/sqllock/sqllock/observe"
)

// A background is where a registry does what no caller waits for: it renews leases, and deletes rows.
type background struct {
	closing context.Context // done once the registry is closed
	tasks   sync.WaitGroup
}

// unlessClosed calls fn, which calls observers. It waits for it unless the registry is closed: they
// may call Close, which waits for the tasks.
func (b *background) unlessClosed(fn func()) {
	returned := make(chan struct{})
	go func() {
		defer close(returned)
		fn()
	}()
	select {
	case <-returned:
	case <-b.closing.Done():
	}
}

// deleteLate deletes the rows of holds that were renewed when their leases were over.
func (b *background) deleteLate(holds []*hold) {
	var deleting sync.WaitGroup
	for _, h := range holds {
		deleting.Go(func() { h.cleanUp(b.closing) })
	}
	deleting.Wait()
}

// endTaken ends h because its row was not there to be renewed. It returns false if h was
// unlocked, or over already, or if the registry was closed meanwhile.
func (b *background) endTaken(h *hold) (ended bool) {
	switch {
	case h.lease.isUnlocked(): // its own Unlock was faster
		return false
	case h.observed == nil:
		return h.finish(observe.EndTaken, nil)
	}
	result := make(chan bool, 1)
	b.unlessClosed(func() { result <- h.finish(observe.EndTaken, nil) })
	select {
	case ended = <-result:
	default:
	}
	return ended
}
