package seats

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/streak"
)

// A queue has the callers of this process that wait for the turn, in the order of their arrival. The
// first one waits for the row. Without the queue the next caller would have the row at the moment
// when it is released, and processes that poll it could starve.
type queue struct {
	interval time.Duration // the registry's IdleBetweenTries

	first chan struct{} // has a value while a caller is the first

	mu     sync.Mutex
	outage *outage // that ends the waits of the callers that are in the queue now

	// Only the first caller uses these.
	began time.Time // when the first caller of the streak came; zero if there is none
	left  time.Time // when the turn was last released
}

// An outage is a time in which the database does not answer.
type outage struct {
	met chan struct{} // closed when a caller has met it
	err error         // of that caller; set before
}

func newOutage() *outage { return &outage{met: make(chan struct{})} }

func newQueue(interval time.Duration) *queue {
	return &queue{interval: interval, first: make(chan struct{}, 1), outage: newOutage()}
}

// enter waits until the caller is the first and may lock the turn. It returns an error if ctx ends
// first, or that of share. Otherwise the caller calls leave once it has released the turn.
func (q *queue) enter(ctx context.Context) error {
	q.mu.Lock()
	outage := q.outage
	q.mu.Unlock()
	select {
	case q.first <- struct{}{}:
	case <-outage.met:
		return outage.err
	case <-ctx.Done():
		return ctx.Err()
	}
	rest := streak.StepBack(q.interval) - time.Since(q.left)
	if rest > 0 && time.Since(q.began) < streak.Longest(q.interval) {
		return nil // the streak goes on
	}
	if !bounded.Sleep(ctx, max(rest, 0)) {
		<-q.first
		return ctx.Err()
	}
	q.began = time.Now()
	return nil
}

// share ends the waits of all callers in the queue with err, which the first one has met, if err says
// that the database does not answer. Otherwise each would find out for itself, one after the other,
// after seconds each.
func (q *queue) share(err error) {
	if !errors.Is(err, bounded.ErrNoAnswer) {
		return
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.outage.err = err
	close(q.outage.met)
	q.outage = newOutage()
}

// leave lets the next caller be the first.
func (q *queue) leave() {
	q.left = time.Now()
	<-q.first
}
