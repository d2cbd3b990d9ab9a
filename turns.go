package sqllock

import (
	"context"
	"errors"
	"sync"
)

// turns limit how many statements are sent alone because their batch failed, or could not
// take them along: one broken connection must not make all callers of a batch open another.
type turns struct {
	places chan struct{}

	mu     sync.Mutex
	silent chan struct{} // closed when the database does not answer one that has a turn
}

func newTurns(n int) *turns {
	return &turns{places: make(chan struct{}, n), silent: make(chan struct{})}
}

// take waits for a turn. It returns ctx's error if that ends first, and errNoAnswer if the
// database does not answer those who have one: it would not answer this caller either.
func (t *turns) take(ctx context.Context) error {
	t.mu.Lock()
	silent := t.silent
	t.mu.Unlock()
	select {
	case t.places <- struct{}{}:
		return nil
	case <-silent:
		return errNoAnswer
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass ends a turn whose statement ended with err.
func (t *turns) pass(err error) {
	if errors.Is(err, errTimedOut) {
		t.mu.Lock()
		close(t.silent) // before the turn is free, so that none of them takes it
		t.silent = make(chan struct{})
		t.mu.Unlock()
	}
	<-t.places
}
