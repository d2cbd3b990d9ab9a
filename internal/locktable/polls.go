package locktable

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/jitter"
)

const (
	// pollShare is how many times longer than a poll the pause after it is, if the waiters
	// accept that: polls take no more than a few per cent of one processor of the server.
	pollShare = 24
	// shortestPoll is the shortest pause, unless the longest is shorter.
	shortestPoll = 25 * time.Millisecond
	// pollSlowAfter is how long waiters wait for the answer to a poll. Its connection may be
	// dead.
	pollSlowAfter = time.Second
	// maxPolled is how many rows one poll reads at most.
	maxPolled = 10_000
)

// polls batches the polls of a table's waiters: those that are due are answered by one statement,
// and the next one follows after a pause that grows with what the statements cost, up to the
// longest that a waiter accepts. So a thousand waiters cost a few statements a second, and a
// few waiters find a release soon. A waiter that is due alone reads its row by itself.
//
// Between polls there is a timer, and no goroutine.
type polls struct {
	// read reads the rows of many keys.
	read func(context.Context, values) (map[string]Row, error)

	mu    sync.Mutex
	queue []*pollCall
	timer *time.Timer   // starts the next poll
	armed time.Time     // when it does; zero if it does not
	turn  *pollTurn     // the poll that is under way, or nil
	cost  time.Duration // of a poll, smoothed
	last  time.Time     // when the last poll ended
	less  time.Duration // the random part of the pause after it, in thousandths
	floor time.Time     // no poll begins before that
}

// A Pace says how often a waiter polls.
type Pace struct {
	// Longest is the longest pause before a poll.
	Longest time.Duration
	// Rare has the pause be the longest, less a random part. Otherwise it is as short as the
	// cost of a poll permits.
	Rare bool
	// Left, unless it is 0, is when the lease that the waiter has seen is over. If no poll comes before
	// that, the waiter reads its row by itself.
	Left time.Duration
	// Wake ends the pause. It may be nil.
	Wake <-chan struct{}
}

// A pollTurn is a poll that is under way.
type pollTurn struct {
	calls   []*pollCall
	longest time.Duration // the shortest of theirs
	began   time.Time
	slow    *time.Timer // has others go on without it
}

// A pollCall waits for a poll.
type pollCall struct {
	claim   Claim
	longest time.Duration
	due     time.Time
	waiting bool            // it is in the queue
	answer  chan pollAnswer // has room for the answer
}

// A pollAnswer is a row, an error, or a turn: then the caller is to read its row, and to end the
// turn.
type pollAnswer struct {
	row  Row
	err  error
	turn *pollTurn
}

// join returns a call that gets its answer with the next poll that it is due for.
func (p *polls) join(c Claim, pace Pace) *pollCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	call := &pollCall{claim: c, longest: pace.Longest, waiting: true, answer: make(chan pollAnswer, 1)}
	if call.due = p.last.Add(p.pause(pace.Longest)); call.due.Before(now) {
		call.due = now.Add(p.pause(pace.Longest))
	}
	if pace.Rare {
		call.due = now.Add(pace.Longest - jitter.N(pace.Longest/5+1))
	}
	p.queue = append(p.queue, call)
	p.arm(call.due)
	return call
}

// pause returns how long after a poll the next one begins. It is the same for all callers, less a
// random part.
func (p *polls) pause(longest time.Duration) time.Duration {
	return min(longest, max(shortestPoll, longest/4, p.cost*pollShare)) / 1000 * (1000 - p.less)
}

// arm has the next poll begin at due, or earlier if that is planned.
func (p *polls) arm(due time.Time) {
	if due.Before(p.floor) {
		due = p.floor
	}
	switch {
	case p.turn != nil || !p.armed.IsZero() && !due.Before(p.armed):
		return
	case p.timer == nil:
		p.timer = time.AfterFunc(time.Until(due), p.poll)
	default:
		p.timer.Reset(time.Until(due))
	}
	p.armed = due
}

// rearm has the next poll begin when the first call of the queue is due.
func (p *polls) rearm() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.armed = time.Time{}
	if len(p.queue) > 0 {
		p.arm(slices.MinFunc(p.queue, func(a, b *pollCall) int { return a.due.Compare(b.due) }).due)
	}
}

// leave ends a call. If it has an answer that its caller does not want, that is dropped.
func (p *polls) leave(call *pollCall) {
	p.mu.Lock()
	if call.waiting {
		call.waiting = false
		p.queue = slices.DeleteFunc(p.queue, func(one *pollCall) bool { return one == call })
		if len(p.queue) == 0 {
			p.rearm()
		}
	}
	p.mu.Unlock()
	select {
	case a := <-call.answer:
		if a.turn != nil {
			p.end(a.turn)
		}
	default:
	}
}

// poll answers the calls that are due.
func (p *polls) poll() {
	turn := p.begin()
	switch {
	case turn == nil:
	case len(turn.calls) == 1:
		turn.calls[0].answer <- pollAnswer{turn: turn}
	default:
		claims := make([]Claim, len(turn.calls))
		for i, call := range turn.calls {
			claims[i] = call.claim
		}
		rows, err := p.read(context.Background(), together(claims))
		if err != nil {
			err = errRetryAlone // it need not be about each of the rows
		}
		if !p.end(turn) {
			return // the callers do not wait any more
		}
		for _, call := range turn.calls {
			call.answer <- pollAnswer{row: rows[call.claim.LockKey], err: err}
		}
	}
}

// begin takes the calls that are due out of the queue. It returns nil if there are none.
func (p *polls) begin() *pollTurn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != nil {
		return nil
	}
	now := time.Now()
	turn := &pollTurn{began: now}
	rest := p.queue[:0:0]
	for _, call := range p.queue {
		if call.due.After(now) || len(turn.calls) == maxPolled {
			rest = append(rest, call)
			continue
		}
		call.waiting = false
		turn.calls = append(turn.calls, call)
	}
	p.queue = rest
	if len(turn.calls) == 0 {
		p.rearm()
		return nil
	}
	turn.longest = slices.MinFunc(turn.calls, func(a, b *pollCall) int { return int(a.longest - b.longest) }).longest
	turn.slow = time.AfterFunc(pollSlowAfter, func() { p.giveUp(turn) })
	p.turn, p.armed = turn, time.Time{}
	return turn
}

// end ends a turn that has its answer, and plans the next one. It returns false if others have
// gone on before.
func (p *polls) end(turn *pollTurn) bool {
	turn.slow.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != turn {
		return false
	}
	// One that is very late tells little about the next one.
	took := min(time.Since(turn.began), 2*turn.longest/pollShare)
	p.cost += (took - p.cost) / 4
	p.plan(turn)
	return true
}

// giveUp has the callers of a turn without an answer read their rows themselves, and others poll.
func (p *polls) giveUp(turn *pollTurn) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.turn != turn {
		return
	}
	p.plan(turn)
	if len(turn.calls) > 1 {
		for _, call := range turn.calls {
			call.answer <- pollAnswer{err: errRetryAlone}
		}
	}
}

// plan ends a turn.
func (p *polls) plan(turn *pollTurn) {
	p.turn = nil
	p.last = time.Now()
	p.less = jitter.N[time.Duration](201) // so that processes do not poll in step
	p.floor = p.last.Add(p.pause(turn.longest))
	p.rearm()
}
