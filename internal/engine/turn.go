package engine

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/locktable"
)

// A caller of a fair lock waits for its turn, which one caller of all processes has at a time, in the order in which
// they have asked. Within the process it queues before that, so a process has one place in the queue of each key. The one
// that has the turn is the only one that polls the row, so it polls often. When it has acquired the row, it gives the turn
// up. A first attempt does not wait for the turn: it is made if no other caller has it.
//
// The row alone says who holds the lock. A caller that cannot have a turn goes on like one of a lock that is not fair.
//
// A joint lock's caller has the turn of one key at a time, the one that it waits for: otherwise it would keep others from keys
// that are free.

const (
	// shortestTurnPoll is the shortest pause between two polls in turn, and turnPollShare how many times longer than a
	// poll it is at least: polls take up to a fifth of one connection.
	shortestTurnPoll = 2 * time.Millisecond
	turnPollShare    = 4
	// heldShare is how many times shorter the pause is than the time for which the row has been held: the lock is
	// unused for that part of it at most.
	heldShare = 16
	// leaveTurnWait is how long a caller that has acquired waits until it is known that the turn was given up, or a tenth
	// (leaveTurnShare) of its lease if that is shorter.
	leaveTurnWait  = 100 * time.Millisecond
	leaveTurnShare = 10
)

// A ticket is what a waiter has of the queue between processes.
type ticket struct {
	turn      *locktable.Turn // or nil
	turnOf    string          // the LOCK_KEY
	unordered bool            // there could be no turn
}

// isInOrder reports whether w acquires in the order of arrival between processes.
func (w *waiter) isInOrder() bool { return w.hold.fair && !w.unordered }

// mayTry reports whether w may make an attempt: it has the turn, or no other caller has. Its error is the lock table's.
func (w *waiter) mayTry(ctx context.Context) (bool, error) {
	if !w.isInOrder() || w.turn != nil {
		return true, nil
	}
	return w.table.TurnIsFree(ctx, w.busyKey())
}

// busyKey is the LOCK_KEY at which w waits.
func (w *waiter) busyKey() string { return w.hold.keyAt(w.busy).lockKey }

// takeTurn waits for the turn at the key at which w waits, unless w has it. If there can be none, w waits on without; if the
// database does not answer, or a pooler is found, it returns an error.
func (w *waiter) takeTurn(ctx context.Context) error {
	lockKey := w.busyKey()
	if w.turn != nil && w.turnOf == lockKey {
		return nil
	}
	w.leaveTurn(ctx)
	turn, err := w.table.TakeTurn(ctx, lockKey)
	switch {
	case err == nil:
		w.turn, w.turnOf = turn, lockKey
	case bounded.Ended(ctx) != nil, locktable.Is(err, locktable.NoAnswer), locktable.Is(err, locktable.WrongSession):
		return failure.Of(err, w.hold.key)
	default:
		w.unordered = true
	}
	return nil
}

// leaveTurn gives the turn up, if w has it. It waits for that for a moment: the caller's next try must not take its own turn for
// another's.
func (w *waiter) leaveTurn(ctx context.Context) {
	if w.turn == nil {
		return
	}
	turn, left := w.turn, make(chan struct{})
	w.turn = nil
	w.calls.Go(func() { turn.Leave(ctx, left) })
	timer := time.NewTimer(min(leaveTurnWait, w.hold.ttl/leaveTurnShare))
	defer timer.Stop()
	select {
	case <-left:
	case <-timer.C:
	}
}

// pollInTurn waits for the turn, and then reads the row again and again, until it is free or w is woken up.
func (w *waiter) pollInTurn(ctx context.Context) (seen locktable.Row, err error) {
	h := w.hold
	claim := h.claim()
	claim.LockKey, claim.More = w.busyKey(), nil
	for {
		if err := w.takeTurn(ctx); err != nil || w.unordered {
			return seen, err
		}
		w.subscribe(w.waker, h.config.table.Topic(claim.LockKey)) // before the row is read
		sent := time.Now()
		if seen, _, err = w.table.Read(ctx, claim); err != nil {
			return seen, failure.Of(err, h.key)
		}
		h.observed.notePoll()
		if isFree(seen) || w.table.HasLeftover(h.claim()) { // an attempt deletes a leftover row
			return seen, nil
		}
		w.recordRow(seen)
		_ = w.table.Process(ctx, seen) // it is known when ctx has ended
		woken, err := w.sleepInTurn(ctx, w.turnPause(seen, time.Since(sent)))
		if woken || err != nil {
			return seen, err
		}
	}
}

// turnPause returns how long to wait before the row is read again, which a poll that took so long has seen.
func (w *waiter) turnPause(seen locktable.Row, took time.Duration) time.Duration {
	pause := min(w.idle, max(shortestTurnPoll, took*turnPollShare, seen.Age/heldShare))
	if w.waker != nil {
		pause = w.idle
	}
	if seen.Left < pause { // it may be the longest Duration there is: add nothing to it
		pause = seen.Left + time.Millisecond + jitter.N(maxScatter)
	}
	return pause
}

// sleepInTurn waits for d or a wake-up, and keeps the turn meanwhile. If the turn is lost, it returns early.
func (w *waiter) sleepInTurn(ctx context.Context, d time.Duration) (woken bool, err error) {
	for ; d > 0; d -= locktable.KeepTurnEvery {
		woken, ok := w.wait(ctx, min(d, locktable.KeepTurnEvery))
		if woken || !ok {
			return woken, ctx.Err()
		}
		if !w.turn.Keep(ctx) {
			w.leaveTurn(ctx)
			return false, ctx.Err()
		}
	}
	return false, nil
}
