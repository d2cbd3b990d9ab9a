package locktable

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/jitter"
)

// Poll is [Table.Read] for a waiter that reads the row again and again. It waits until the next poll, which may read
// the rows of other waiters, too. If a value comes from p.Wake before the answer, woken is true, and there is no row.
func (t *Table) Poll(ctx context.Context, c Claim, p Pace) (row Row, woken bool, err error) {
	call := t.polls.join(c, p)
	defer t.polls.leave(call)
	var over <-chan time.Time
	if p.Left > 0 {
		timer := time.NewTimer(p.Left)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case a := <-call.answer:
		switch {
		case a.round != nil:
			row, _, err = t.Read(ctx, c)
			var found news
			if err == nil {
				found.of(p.Seen, row)
			}
			t.polls.end(a.round, found)
		case errors.Is(a.err, errRetryAlone):
			row, err = t.readLimited(ctx, c, t.polled)
		default:
			row, err = a.row, a.err
		}
		return row, false, err
	case <-over:
		row, _, err = t.Read(ctx, c)
		return row, false, err
	case <-p.Wake:
		return Row{}, true, nil
	case <-ctx.Done():
		return Row{}, false, t.errors.explain(ctx, reading.op, ctx.Err())
	}
}

// pollMany reads the rows of many keys for their waiters.
func (t *Table) pollMany(ctx context.Context, v values) (map[string]Row, error) {
	return callAlone(ctx, t, polling, 0, func(ctx context.Context) (map[string]Row, error) {
		return t.peekMany(ctx, v)
	}, nil)
}

const (
	// pollShare is how many times longer than a poll the pause after it is, if the waiters accept that: polls take no
	// more than a few per cent of one processor of the server.
	pollShare = 24
	// soonShare is the same for a waiter that asks for a pause.
	soonShare = 8
	// pollSlowAfter is how long waiters wait for the answer to a poll. Its connection may be dead, so they poll
	// together once more. If that fails, too, each reads its row by itself.
	pollSlowAfter = time.Second
	// maxPolled is how many rows one poll reads at most.
	maxPolled = 10_000
)

// polls batches the polls of a table's waiters: those that are due are answered by one statement, and the next one
// follows after a pause that grows with what the statements cost, up to the longest that a waiter accepts. So a
// thousand waiters cost a few statements a second, and a few waiters find a release soon. A waiter that is due alone
// reads its row by itself.
//
// Where a [Watcher] reports writes, a poll follows a write soon, and waiters poll seldom while there is none: see [writes].
//
// Between polls there is a timer, and no goroutine.
type polls struct {
	// read reads the rows of many keys.
	read func(context.Context, values) (map[string]Row, error)

	mu     sync.Mutex
	hears  bool // there was a report
	writes writes
	queue  []*pollCall
	timer  *time.Timer   // starts the next poll
	armed  time.Time     // when it does; zero if it does not
	round  *pollRound    // the poll that is under way, or nil
	cost   time.Duration // of a poll, smoothed
	last   time.Time     // when the last poll ended
	less   time.Duration // the random part of the pause after it, in thousandths
}

// ShortestPoll is the shortest pause before a poll of a waiter that asks for none, if that may be longer.
func ShortestPoll(longest time.Duration) time.Duration { return max(25*time.Millisecond, longest/4) }

// A Pace says how often a waiter polls.
type Pace struct {
	// Longest is the longest pause before a poll.
	Longest time.Duration
	// Pause, unless it is 0, is the pause, less a random part; it is longer if polls cost much. Otherwise it is as
	// short as the cost of a poll permits.
	Pause time.Duration
	// Left, unless it is 0, is when the lease that the waiter has seen is over. If no poll comes before that, the
	// waiter reads its row by itself.
	Left time.Duration
	// Wake ends the pause. It may be nil.
	Wake <-chan struct{}
	// Seen is the row when the waiter has last read it, and Watched reports whether that was after [Table.Attend].
	Seen    Row
	Watched bool
	// Regardless has the waiter poll as if no writes were reported.
	Regardless bool
}

// A pollRound is a poll that is under way.
type pollRound struct {
	calls   []*pollCall
	longest time.Duration // the shortest of theirs
	began   time.Time
	slow    *time.Timer // has others go on without it
}

// A pollCall waits for a poll.
type pollCall struct {
	claim  Claim
	pace   Pace
	joined time.Time
	due    time.Time
	place  int             // in the queue, or inRound, or gone
	again  bool            // a poll of many has failed it
	answer chan pollAnswer // has room for the answer
}

// Places of a call that is not in the queue.
const (
	inRound = -1
	gone    = -2 // its caller does not wait any more
)

// A pollAnswer is a row, an error, or a turn: then the caller is to read its row, and to end the round.
type pollAnswer struct {
	row   Row
	err   error
	round *pollRound
}

// join returns a call that gets its answer with the next poll that it is due for.
func (p *polls) join(c Claim, pace Pace) *pollCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	call := &pollCall{claim: c, pace: pace, joined: now, answer: make(chan pollAnswer, 1)}
	if pause := p.ownPause(pace); pause > 0 {
		call.due = now.Add(pause - jitter.N(pause/5+1))
	} else if call.due = p.last.Add(p.pause(pace)); call.due.Before(now) {
		call.due = now.Add(p.pause(pace))
	}
	p.enqueue(call)
	p.arm(p.start(call))
	return call
}

// enqueue appends a call to the queue.
func (p *polls) enqueue(call *pollCall) {
	call.place = len(p.queue)
	p.queue = append(p.queue, call)
}

// dequeue takes a call out of the queue. The last one takes its place, so that it costs no more if the queue is long.
func (p *polls) dequeue(call *pollCall) {
	last := len(p.queue) - 1
	p.queue[call.place] = p.queue[last]
	p.queue[call.place].place = call.place
	p.queue[last] = nil
	p.queue = p.queue[:last]
}

// pause returns how long after a poll the next one begins. It is the same for all callers, less a random part.
func (p *polls) pause(pace Pace) time.Duration {
	return min(pace.Longest, max(ShortestPoll(pace.Longest), p.cost*pollShare)) / 1000 * (1000 - p.less)
}

// ownPause returns the pause that a caller asks for, or 0.
func (p *polls) ownPause(pace Pace) time.Duration {
	if pace.Pause == 0 {
		return 0
	}
	return min(pace.Longest, max(pace.Pause, p.cost*soonShare))
}

// start returns when a poll for a call can begin. Those who have failed need not wait out the pause.
func (p *polls) start(call *pollCall) time.Time {
	if call.again {
		return call.due
	}
	pause := p.pause(call.pace)
	if own := p.ownPause(call.pace); own > 0 {
		pause = min(pause, own)
	}
	at := call.due
	if earliest := p.last.Add(pause); at.Before(earliest) {
		at = earliest
	}
	if p.hears {
		at = p.writes.adjust(call, at)
	}
	return at
}

// arm has the next poll begin at due, or earlier if that is planned.
func (p *polls) arm(due time.Time) {
	switch {
	case p.round != nil || !p.armed.IsZero() && !due.Before(p.armed):
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
		p.arm(p.start(slices.MinFunc(p.queue, func(a, b *pollCall) int { return p.start(a).Compare(p.start(b)) })))
	}
}

// leave ends a call. If it has an answer that its caller does not want, that is dropped.
func (p *polls) leave(call *pollCall) {
	p.mu.Lock()
	if call.place >= 0 {
		p.dequeue(call)
		if len(p.queue) == 0 {
			p.rearm()
		}
	}
	call.place = gone
	p.mu.Unlock()
	select {
	case a := <-call.answer:
		if a.round != nil {
			p.end(a.round, news{})
		}
	default:
	}
}

// poll answers the calls that are due.
func (p *polls) poll() {
	round := p.begin()
	switch {
	case round == nil:
	case len(round.calls) == 1:
		round.calls[0].answer <- pollAnswer{round: round}
	default:
		claims := make([]Claim, len(round.calls))
		for i, call := range round.calls {
			claims[i] = call.claim
		}
		rows, err := p.read(context.Background(), together(claims))
		if err != nil {
			p.fail(round)
			return
		}
		var found news
		for _, call := range round.calls {
			found.of(call.pace.Seen, rows[call.claim.LockKey])
		}
		if !p.end(round, found) {
			return // the callers do not wait for it any more
		}
		for _, call := range round.calls {
			call.answer <- pollAnswer{row: rows[call.claim.LockKey]}
		}
	}
}

// begin takes the calls that are due out of the queue. It returns nil if there are none.
func (p *polls) begin() *pollRound {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.round != nil {
		return nil
	}
	now := time.Now()
	round := &pollRound{began: now}
	queue := p.queue
	p.queue = nil
	for _, call := range queue {
		due := call.due
		if p.hears {
			due = p.writes.adjust(call, due)
		}
		if due.After(now) || len(round.calls) == maxPolled {
			p.enqueue(call)
			continue
		}
		call.place = inRound
		round.calls = append(round.calls, call)
	}
	if len(round.calls) == 0 {
		p.rearm()
		return nil
	}
	for _, call := range round.calls {
		round.longest = min(cmp.Or(round.longest, call.pace.Longest), call.pace.Longest)
	}
	round.slow = time.AfterFunc(pollSlowAfter, func() { p.fail(round) })
	p.round, p.armed = round, time.Time{}
	return round
}

// end ends a round that has its answer, and plans the next one. It returns false if others have gone on before.
func (p *polls) end(round *pollRound, found news) bool {
	round.slow.Stop()
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.round != round {
		return false
	}
	// One that is very late tells little about the next one.
	took := min(time.Since(round.began), 2*round.longest/pollShare)
	p.cost += (took - p.cost) / 4
	if p.hears {
		p.writes.polled(round.began, found)
	}
	p.plan()
	return true
}

// fail ends a round that has no answer. One of a single call goes on, but others do not wait for it. Of many, each
// polls with the others once more, at once, and then reads its row by itself: the failure need not be about each of
// the rows.
func (p *polls) fail(round *pollRound) {
	p.mu.Lock()
	defer p.mu.Unlock()
	round.slow.Stop()
	if p.round != round {
		return
	}
	p.writes.polled(round.began, news{})
	p.plan()
	if len(round.calls) == 1 {
		return
	}
	now := time.Now()
	for _, call := range round.calls {
		switch {
		case call.place == gone:
		case call.again:
			call.answer <- pollAnswer{err: errRetryAlone}
		default:
			call.again, call.due = true, now
			p.enqueue(call)
		}
	}
	p.rearm()
}

// A news is what a poll has found of the rows that it has read.
type news struct{ changed, free bool }

// of adds what was found of one row.
func (n *news) of(before, now Row) {
	n.changed = n.changed || now.Holder != before.Holder || now.Left > before.Left
	n.free = n.free || now.Holder == ""
}

// plan ends a round.
func (p *polls) plan() {
	p.round = nil
	p.last = time.Now()
	p.less = jitter.N[time.Duration](201) // so that processes do not poll in step
	p.rearm()
}
