package engine

import (
	"context"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/locktable"
	"github.com/sqllock/sqllock/internal/turns"
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
	// shortestTurnPoll is the shortest pause between two polls of a caller that has the turn. turnPollShare is how many times
	// longer than a poll the pause is at least: polls take up to a fifth of one connection.
	shortestTurnPoll = 2 * time.Millisecond
	turnPollShare    = 4
	// heldShare is how many times shorter the pause is than the time for which the row has been held: the lock is
	// unused for that part of it at most.
	heldShare = 16
	// leaveTurnWait is how long a caller that has acquired waits for the answer that its turn was given up; it waits for a
	// tenth (leaveTurnShare) of its lease if that is shorter.
	leaveTurnWait  = 100 * time.Millisecond
	leaveTurnShare = 10
	// queueAgain is how long a caller waits without a turn before it asks for one again. Sessions may have been lacking for a
	// moment, as when its own die one after the other.
	queueAgain = 5 * time.Second
	// longestQueueAgain is the longest such pause. Each one that was in vain is followed by one that is twice as long.
	longestQueueAgain = time.Minute
)

// A ticket is what a waiter has of the queue between processes.
type ticket struct {
	turn      *turns.Turn   // or nil
	turnOf    string        // the LOCK_KEY
	unordered bool          // there could be no turn
	again     time.Time     // when it asks for one again
	pause     time.Duration // the last one before that, or 0
}

// isInOrder reports whether w acquires in the order of arrival between processes.
func (w *waiter) isInOrder() bool { return w.hold.fair && !w.ticket.unordered }

// inOrder returns c for an attempt that must not overtake the callers that wait: w has the turn, or no other caller has.
func (w *waiter) inOrder(c locktable.Claim) locktable.Claim {
	if w.isInOrder() && w.ticket.turn == nil {
		c.InOrder = w.queueKey()
	}
	return c
}

// queueKey is the LOCK_KEY at which w waits.
func (w *waiter) queueKey() string { return w.hold.keys[w.queuesAt].lockKey }

// takeTurn waits for the turn at the key at which w waits, unless w has it. If there can be none, w waits on without; if the
// database does not answer, or a pooler is found, it returns an error.
func (w *waiter) takeTurn(ctx context.Context) error {
	lockKey := w.queueKey()
	if w.ticket.turn != nil && w.ticket.turnOf == lockKey {
		return nil
	}
	w.leaveTurn(ctx)
	turn, err := w.locks.table.Turns.Take(ctx, lockKey)
	switch {
	case err == nil:
		w.ticket.turn, w.ticket.turnOf, w.ticket.pause = turn, lockKey, 0
	case bounded.Ended(ctx) != nil: // to wait for a turn is no silence of the database
		return ctx.Err()
	case dbcall.Is(err, dbcall.NoAnswer), dbcall.Is(err, dbcall.WrongSession):
		return failure.Of(err, w.hold.key)
	default:
		w.ticket.unordered, w.ticket.pause = true, min(max(queueAgain, 2*w.ticket.pause), longestQueueAgain)
		w.ticket.again = time.Now().Add(w.ticket.pause - jitter.N(w.ticket.pause/4)) // callers that have failed together do not ask together
	}
	return nil
}

// leaveTurn gives the turn up, if w has it. It waits for that for a moment: the caller's next try must not take its own turn for
// another's.
func (w *waiter) leaveTurn(ctx context.Context) {
	if w.ticket.turn == nil {
		return
	}
	turn, left := w.ticket.turn, make(chan struct{})
	w.ticket.turn = nil
	w.locks.calls.Go(func() { turn.Leave(ctx, left) })
	timer := time.NewTimer(min(leaveTurnWait, w.hold.ttl/leaveTurnShare))
	defer timer.Stop()
	select {
	case <-left:
	case <-timer.C:
	}
}

// pollInTurn waits for the turn, and then reads the row again and again, until it is free or w is woken up. If there can
// be no turn, or none any more, w is unordered. seen is the row when it was last read, if it was.
func (w *waiter) pollInTurn(ctx context.Context) (seen locktable.Row, err error) {
	h := w.hold
	claim := h.claim()
	claim.LockKey, claim.More = w.queueKey(), nil
	var holder string
	var since time.Time // when it was first seen
	for {
		if err := w.takeTurn(ctx); err != nil || w.ticket.unordered {
			return seen, err
		}
		w.wakeups.subscribe(w.locks.waker, h.locks.table.Topic(claim.LockKey)) // before the row is read
		sent := time.Now()
		w.noteSent()
		if seen, _, err = w.locks.table.Reads.Read(ctx, claim); err != nil {
			return seen, failure.Of(err, h.key)
		}
		h.observed.NotePoll()
		if w.isFree(seen) {
			return seen, nil
		}
		w.recordRow(seen)
		_ = w.locks.table.Names.Process(ctx, seen) // it is known when ctx has ended
		if seen.Holder != holder {
			holder, since = seen.Holder, sent
		}
		woken, err := w.sleepInTurn(ctx, w.turnPause(seen, time.Since(since), time.Since(sent)))
		if woken || err != nil {
			return seen, err
		}
	}
}

// turnPause returns how long to wait before the row is read again. seenFor is for how long its holder has been seen, took how
// long the last poll took. A row's age alone does not tell for how long it has been held: over four columns a renewal makes
// it young again, and CREATED_DATE may lie ahead, as in a minimum hold or of another program's clock.
func (w *waiter) turnPause(seen locktable.Row, seenFor, took time.Duration) time.Duration {
	pause := min(w.locks.idle, max(shortestTurnPoll, took*turnPollShare, max(seen.Age, seenFor)/heldShare))
	if w.locks.waker != nil {
		pause = w.locks.idle
	}
	if seen.Left < pause { // it may be the longest Duration there is: add nothing to it
		pause = seen.Left + time.Millisecond + jitter.N(maxScatter)
	}
	return pause
}

// sleepInTurn waits for d or a wake-up, and keeps the turn meanwhile. If the turn is lost, it returns early.
func (w *waiter) sleepInTurn(ctx context.Context, d time.Duration) (woken bool, err error) {
	for ; d > 0; d -= turns.KeepTurnEvery {
		woken, ok := w.wakeups.wait(ctx, min(d, turns.KeepTurnEvery))
		if woken || !ok {
			return woken, ctx.Err()
		}
		if !w.ticket.turn.Keep(ctx) {
			w.leaveTurn(ctx)
			return false, ctx.Err()
		}
	}
	return false, nil
}
