package locktable

import (
	"context"
	"slices"
	"sync"
	"time"
)

const (
	// pollShare is how many times longer than a poll the pause after it is: polls take no
	// more than a few per cent of one processor of the server.
	pollShare = 24
	// pollSlowAfter is how long waiters wait for the poll of others, beyond the pause. The
	// connection of that one may be dead.
	pollSlowAfter = time.Second
	// maxPolled is how many rows one poll reads at most.
	maxPolled = 10_000
)

// polls batches the polls of a table's waiters. A waiter that polls while no other one does reads
// its row by itself, at once. Those that arrive while a poll is under way, or in the pause after
// one of several rows, are answered by one statement. The pause grows with what the statement
// has cost, up to the longest that a waiter accepts. So a thousand waiters cost a few statements
// a second, and a single one is never delayed.
type polls struct {
	// read reads the rows of many keys.
	read func(context.Context, values) (map[string]Row, error)

	mu      sync.Mutex
	current *pollTurn // what is under way, or the pause after it; nil if nothing is
	queue   []*pollCall
}

// A pollTurn is a poll that is under way, and the pause after it.
type pollTurn struct {
	late time.Time // from then on the others do not wait for it
	next time.Time // when the next poll begins; zero until the answer is there
}

// A pollCall waits for the answer of a poll.
type pollCall struct {
	claim   Claim
	longest time.Duration   // how long the caller may wait
	answer  chan pollAnswer // has room for the answer
}

type pollAnswer struct {
	row Row
	err error
}

// join returns a turn if the caller is to read its row now, and to call done afterwards. Otherwise
// it returns a call that will be answered.
func (p *polls) join(c Claim, longest time.Duration) (*pollCall, *pollTurn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil || time.Now().After(p.current.late) {
		return nil, p.beginLocked()
	}
	call := &pollCall{c, longest, make(chan pollAnswer, 1)}
	p.queue = append(p.queue, call)
	return call, nil
}

func (p *polls) beginLocked() *pollTurn {
	p.current = &pollTurn{late: time.Now().Add(pollSlowAfter)}
	return p.current
}

// done notes that the poll of a single row has ended. If callers have come meanwhile, theirs is
// the next.
func (p *polls) done(turn *pollTurn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.current != turn: // it was late, and others went on
	case len(p.queue) > 0:
		go p.run(turn)
	default:
		p.current = nil
	}
}

// leave removes a call whose caller does not wait any more.
func (p *polls) leave(call *pollCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = slices.DeleteFunc(p.queue, func(one *pollCall) bool { return one == call })
}

// run sends polls, with pauses, until nobody waits for one, or others go on.
func (p *polls) run(turn *pollTurn) {
	for {
		var calls []*pollCall
		if calls, turn = p.take(turn); len(calls) == 0 {
			return
		}
		claims, longest := make([]Claim, len(calls)), calls[0].longest
		for i, call := range calls {
			claims[i], longest = call.claim, min(longest, call.longest)
		}
		began := time.Now()
		rows, err := p.read(context.Background(), together(claims))
		pause := p.pauseAfter(turn, time.Since(began), longest)
		for _, call := range calls {
			call.answer <- pollAnswer{rows[call.claim.LockKey], err}
		}
		time.Sleep(pause)
	}
}

// take returns the calls of the next poll, which follows a turn, and its turn. If there are none,
// the next caller reads by itself.
func (p *polls) take(after *pollTurn) ([]*pollCall, *pollTurn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current != after {
		return nil, nil
	}
	n := min(len(p.queue), maxPolled)
	calls := slices.Clone(p.queue[:n])
	p.queue = slices.Delete(p.queue, 0, n)
	if n == 0 {
		p.current = nil
		return nil, nil
	}
	return calls, p.beginLocked()
}

// pauseAfter returns the pause after a poll, and notes when the next one begins.
func (p *polls) pauseAfter(turn *pollTurn, took, longest time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := min(took*pollShare, max(0, longest-took))
	turn.next = time.Now().Add(pause)
	turn.late = turn.next.Add(pollSlowAfter)
	return pause
}

// delay returns how long a call that joins now waits for its poll to begin.
func (p *polls) delay() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil {
		return 0
	}
	return max(0, time.Until(p.current.next))
}
