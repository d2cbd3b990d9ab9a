// Package poll lets many waiters of one process poll their rows by one statement, soon enough and at a bounded cost. It knows no
// pool: how rows are read is handed in.
package poll

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/jitter"
	"github.com/sqllock/sqllock/internal/stmt"
)

// Poll waits until the next poll, which may read the rows of other waiters, too, and returns the row of c. If a value comes
// from pace.Wake before the answer, woken is true, and there is no row.
func (p *Poller) Poll(ctx context.Context, c stmt.Claim, pace Pace) (row stmt.Row, woken bool, err error) {
	call := p.join(c, pace)
	defer p.leave(call)
	var over <-chan time.Time
	if pace.Left > 0 {
		timer := time.NewTimer(pace.Left)
		defer timer.Stop()
		over = timer.C
	}
	select {
	case a := <-call.answer:
		switch {
		case a.round != nil:
			row, _, err = p.reads.One(ctx, c)
			var found news
			if err == nil {
				found.of(pace.Seen, row)
			}
			p.end(a.round, found)
		case errors.Is(a.err, errAlone):
			row, err = p.reads.Limited(ctx, c)
		default:
			row, err = a.row, a.err
		}
		return row, false, err
	case <-over:
		row, _, err = p.reads.One(ctx, c)
		return row, false, err
	case <-pace.Wake:
		return stmt.Row{}, true, nil
	case <-ctx.Done():
		return stmt.Row{}, false, &dbcall.Error{Op: "read", Kind: dbcall.Ended, Err: bounded.Ended(ctx)}
	}
}

// errAlone makes a waiter read its row by itself, after a poll of many has failed twice.
var errAlone = errors.New("read it alone")

// Reads are how rows are read.
type Reads struct {
	One     func(context.Context, stmt.Claim) (row stmt.Row, there bool, err error)
	Limited func(context.Context, stmt.Claim) (stmt.Row, error)             // for those whose poll has failed: a few at a time
	Many    func(context.Context, stmt.Values) (map[string]stmt.Row, error) // by LOCK_KEY
}

// New returns a poller. w may be nil.
func New(reads Reads, w Watcher) *Poller { return &Poller{reads: reads, watcher: w} }

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

// A Poller batches the polls of a table's waiters: those that are due are answered by one statement, and the next one
// follows after a pause that grows with what the statements cost, up to the longest that a waiter accepts. So a
// thousand waiters cost a few statements a second, and a few waiters find a release soon. A waiter that is due alone
// reads its row by itself.
//
// Where a [Watcher] reports writes, a poll follows a write soon, and waiters poll seldom while there is none: see [writes].
//
// Between polls there is a timer, and no goroutine. When a poll comes is decided in three steps:
//
//   - join says when a call is due: after the pause that its waiter asks for, or when the common pause after the last poll
//     is over.
//   - start says when a poll for a call can begin: when it is due, the pause is over, and the writes permit it. The timer
//     is set to the earliest of these times.
//   - begin takes all calls that are due by then, whatever their pauses.
type Poller struct {
	reads      Reads
	watcher    Watcher // nil for none
	attendance attendance

	mu          sync.Mutex
	hears       bool // there was a report
	writes      writes
	queue       []*pollCall
	timer       *time.Timer   // starts the next poll
	armed       time.Time     // when it does; zero if it does not
	round       *pollRound    // the poll that is under way, or nil
	hurried     time.Time     // when waiters were last to poll at once; zero if they never were
	hurriedKeys []string      // of their rows
	cost        time.Duration // of a poll, smoothed
	begun       time.Time     // when the last poll began
	last        time.Time     // when the last poll ended
	less        time.Duration // the random part of the pause after it, in thousandths
}

// ShortestPoll is the shortest pause before a poll of a waiter that asks for none, if that may be longer.
func ShortestPoll(longest time.Duration) time.Duration { return max(25*time.Millisecond, longest/4) }

// A Pace says how often a waiter polls. The engine chooses it, by what it knows of rivals and of the holder; a Poller only bounds it.
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
	// Seen is the row when the waiter has last read it, and Watched reports whether that was after [Poller.Attend].
	Seen    stmt.Row
	Watched bool
	// If Regardless is true, the waiter polls as if no writes or releases were reported.
	Regardless bool
}

// A pollRound is a poll that is under way.
type pollRound struct {
	calls   []*pollCall
	longest time.Duration // the shortest of theirs
	began   time.Time
	slow    *time.Timer // ends the round for the others
}

// A pollCall waits for a poll.
type pollCall struct {
	claim   stmt.Claim
	pace    Pace
	joined  time.Time
	due     time.Time
	place   int             // in the queue, or inRound, or gone
	again   bool            // a poll of many has failed
	hurried bool            // it does not wait for the pause
	answer  chan pollAnswer // has room for the answer
}

// Places of a call that is not in the queue.
const (
	inRound = -1
	gone    = -2 // its caller does not wait any more
)

// A pollAnswer is a row, an error, or a round with this call alone: then the caller reads its row, and ends the round.
type pollAnswer struct {
	row   stmt.Row
	err   error
	round *pollRound
}

// join returns a call that gets its answer with the next poll that it is due for.
func (p *Poller) join(c stmt.Claim, pace Pace) *pollCall {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	call := &pollCall{claim: c, pace: pace, joined: now, answer: make(chan pollAnswer, 1)}
	if p.begun.Before(p.hurried) && p.isHurried(call) {
		call.due, call.hurried = now, true
	} else if pause := p.ownPause(pace); pause > 0 {
		call.due = now.Add(pause - jitter.N(pause/5+1))
	} else if call.due = p.last.Add(p.pause(pace)); call.due.Before(now) {
		call.due = now.Add(p.pause(pace))
	}
	p.enqueue(call)
	p.arm(p.start(call))
	return call
}

// Hurry lets waiters for some rows poll at once, since one may have been released. Waiters whose poll is under way poll once
// more. Later polls come as before.
func (p *Poller) Hurry(lockKeys []string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.hurried, p.hurriedKeys = time.Now(), lockKeys
	for _, call := range p.queue {
		if p.isHurried(call) {
			call.due, call.hurried = p.hurried, true
		}
	}
	p.rearm()
}

func (p *Poller) isHurried(call *pollCall) bool {
	return !call.pace.Regardless && slices.Contains(p.hurriedKeys, call.claim.LockKey)
}

// enqueue appends a call to the queue.
func (p *Poller) enqueue(call *pollCall) {
	call.place = len(p.queue)
	p.queue = append(p.queue, call)
}

// dequeue takes a call out of the queue. The last one takes its place, so that it costs no more if the queue is long.
func (p *Poller) dequeue(call *pollCall) {
	last := len(p.queue) - 1
	p.queue[call.place] = p.queue[last]
	p.queue[call.place].place = call.place
	p.queue[last] = nil
	p.queue = p.queue[:last]
}

// pause returns how long after a poll the next one begins. It is the same for all callers, less a random part.
func (p *Poller) pause(pace Pace) time.Duration {
	return min(pace.Longest, max(ShortestPoll(pace.Longest), p.cost*pollShare)) / 1000 * (1000 - p.less)
}

// ownPause returns the pause that a caller asks for, or 0.
func (p *Poller) ownPause(pace Pace) time.Duration {
	if pace.Pause == 0 {
		return 0
	}
	return min(pace.Longest, max(pace.Pause, p.cost*soonShare))
}

// start returns when a poll for a call can begin. One that a poll has failed need not wait out the pause.
func (p *Poller) start(call *pollCall) time.Time {
	if call.again || call.hurried {
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

// arm sets the timer to due, unless it is set to an earlier time.
func (p *Poller) arm(due time.Time) {
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

// rearm sets the timer to when a poll for the first call of the queue can begin.
func (p *Poller) rearm() {
	if p.timer != nil {
		p.timer.Stop()
	}
	p.armed = time.Time{}
	if len(p.queue) > 0 {
		p.arm(p.start(slices.MinFunc(p.queue, func(a, b *pollCall) int { return p.start(a).Compare(p.start(b)) })))
	}
}

// leave ends a call. If it has an answer that its caller does not want, that is dropped.
func (p *Poller) leave(call *pollCall) {
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
func (p *Poller) poll() {
	round := p.begin()
	if round == nil || len(round.calls) == 1 {
		return
	}
	claims := make([]stmt.Claim, len(round.calls))
	for i, call := range round.calls {
		claims[i] = call.claim
	}
	rows, err := p.reads.Many(context.Background(), stmt.Together(claims))
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

// begin takes the calls that are due out of the queue. It returns nil if there are none. A call that is alone has its answer
// then: its caller may leave at any time, and has to find the round that it is to end.
func (p *Poller) begin() *pollRound {
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
	p.round, p.armed, p.begun = round, time.Time{}, now
	if len(round.calls) == 1 {
		round.calls[0].answer <- pollAnswer{round: round}
	}
	return round
}

// end ends a round that has its answer, and plans the next one. It returns false if others have gone on before.
func (p *Poller) end(round *pollRound, found news) bool {
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
func (p *Poller) fail(round *pollRound) {
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
			call.answer <- pollAnswer{err: errAlone}
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
func (n *news) of(before, now stmt.Row) {
	n.changed = n.changed || now.Holder != before.Holder || now.Left > before.Left
	n.free = n.free || now.Holder == ""
}

// plan ends a round.
func (p *Poller) plan() {
	p.round = nil
	p.last = time.Now()
	p.less = jitter.N[time.Duration](201) // so that processes do not poll in step
	p.rearm()
}
