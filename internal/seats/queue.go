package seats

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
)

const (
	// longestStreak is for how long the callers of a process may have the turn, one after the other,
	// before the process leaves it to others.
	longestStreak = 2 * time.Second
	// stepBack is for how long it does so: another process polls the turn each 100 ms, unless its
	// registry has another IdleBetweenTries, and then needs a moment to acquire it.
	stepBack = 150 * time.Millisecond
)

// A queue has the callers of this process that wait for the turn, in the order of their arrival. The
// first one waits for the row. Without the queue the next caller would have the row at the moment
// when it is released, and processes that poll it could starve.
type queue struct {
	first chan struct{} // has a value while a caller is the first

	// Only the first caller uses these.
	began time.Time // when the first caller of the streak came; zero if there is none
	left  time.Time // when the turn was last released
}

func newQueue() *queue { return &queue{first: make(chan struct{}, 1)} }

// enter waits until the caller is the first and may lock the turn. It returns false if ctx ends first.
// Otherwise the caller calls leave once it has released the turn.
func (q *queue) enter(ctx context.Context) bool {
	select {
	case q.first <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	rest := stepBack - time.Since(q.left)
	if rest > 0 && time.Since(q.began) < longestStreak {
		return true // the streak goes on
	}
	if !bounded.Sleep(ctx, max(rest, 0)) {
		<-q.first
		return false
	}
	q.began = time.Now()
	return true
}

// leave lets the next caller be the first.
func (q *queue) leave() {
	q.left = time.Now()
	<-q.first
}
