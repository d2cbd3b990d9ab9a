package locktable

import (
	"context"
	"errors"
	"sync"
)

// turns limit how many statements of one kind are sent at a time: those that cannot be
// batched must not use up the pool, and one broken connection must not make all callers of a
// batch open another.
type turns struct {
	places chan struct{}

	mu       sync.Mutex
	timedOut chan struct{} // closed when the database does not answer a statement that has a turn
}

func newTurns(n int) *turns {
	return &turns{places: make(chan struct{}, n), timedOut: make(chan struct{})}
}

// take waits for a turn. It returns ctx's error if that ends first, and errNoAnswer if the
// database does not answer a statement that has one: it would not answer this one either.
func (t *turns) take(ctx context.Context) error {
	t.mu.Lock()
	timedOut := t.timedOut
	t.mu.Unlock()
	select {
	case t.places <- struct{}{}:
		return nil
	case <-timedOut:
		return errNoAnswer
	case <-ctx.Done():
		return ctx.Err()
	}
}

// pass ends a turn whose statement ended with err.
func (t *turns) pass(err error) {
	if errors.Is(err, errTimedOut) {
		t.mu.Lock()
		close(t.timedOut) // before the turn is free, so that no waiter takes it
		t.timedOut = make(chan struct{})
		t.mu.Unlock()
	}
	<-t.places
}
