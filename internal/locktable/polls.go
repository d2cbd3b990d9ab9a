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

	mu    sync.Mutex
	busy  bool      // a poll is under way, or the goroutine that sends the next one
	next  time.Time // when the next poll begins, if that goroutine pauses
	queue []*pollCall
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

// join returns nil if the caller is to read its row now, and to call done afterwards. Otherwise
// it returns a call that will be answered.
func (p *polls) join(c Claim, longest time.Duration) *pollCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.busy {
		p.busy = true
		return nil
	}
	call := &pollCall{c, longest, make(chan pollAnswer, 1)}
	p.queue = append(p.queue, call)
	return call
}

// done notes that the poll of a single row has ended. If callers have come meanwhile, theirs is
// the next.
func (p *polls) done() {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.busy = len(p.queue) > 0; p.busy {
		go p.run()
	}
}

// leave removes a call whose caller does not wait any more.
func (p *polls) leave(call *pollCall) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.queue = slices.DeleteFunc(p.queue, func(one *pollCall) bool { return one == call })
}

// run sends polls, with pauses, until nobody waits for one.
func (p *polls) run() {
	for calls := p.take(); len(calls) > 0; calls = p.take() {
		claims, longest := make([]Claim, len(calls)), calls[0].longest
		for i, call := range calls {
			claims[i], longest = call.claim, min(longest, call.longest)
		}
		began := time.Now()
		rows, err := p.read(context.Background(), together(claims))
		pause := p.pauseAfter(time.Since(began), longest)
		for _, call := range calls {
			call.answer <- pollAnswer{rows[call.claim.LockKey], err}
		}
		time.Sleep(pause)
	}
}

// take returns the calls of the next poll. If there are none, the next caller reads by itself.
func (p *polls) take() []*pollCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	n := min(len(p.queue), maxPolled)
	calls := slices.Clone(p.queue[:n])
	p.queue = slices.Delete(p.queue, 0, n)
	p.busy = n > 0
	return calls
}

// pauseAfter returns the pause after a poll, and notes when the next one begins.
func (p *polls) pauseAfter(took, longest time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	pause := min(took*pollShare, max(0, longest-took))
	p.next = time.Now().Add(pause)
	return pause
}
