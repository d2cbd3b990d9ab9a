package locktable

import (
	"context"
	"sync"
)

// orphans counts the acquisitions under way whose callers have gone. If they succeed after
// all, their rows are deleted; a process that ends before would leave them. Statements that trim are
// counted too: no caller waits for them.
type orphans struct {
	mu   sync.Mutex
	n    int
	none chan struct{} // closed when there are none, if a caller waits for that
}

func (o *orphans) add() {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.n++
}

// done ends one: its outcome is known, and its row is deleted if that could be done.
func (o *orphans) done() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.n--; o.n == 0 && o.none != nil {
		close(o.none)
		o.none = nil
	}
}

// wait waits until there are none, or returns the error of ctx.
func (o *orphans) wait(ctx context.Context) error {
	o.mu.Lock()
	if o.n == 0 {
		o.mu.Unlock()
		return nil
	}
	if o.none == nil {
		o.none = make(chan struct{})
	}
	none := o.none
	o.mu.Unlock()
	select {
	case <-none:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
