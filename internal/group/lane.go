package group

import (
	"context"
	"runtime"
	"slices"
	"time"
)

// A lane runs one batch after the other until nobody waits. It keeps its context, its
// clock and its buffers for the next time, so that an item that comes alone costs
// little.
type lane[I, O any] struct {
	group    *Group[I, O]
	ctx      context.Context // of the batches, until one takes too long
	cancel   context.CancelFunc
	batch    []*call[I, O]
	items    []I
	outcomes []Outcome[O]
	keys     map[string]bool

	// The rest is guarded by the group's mutex.
	clock   *time.Timer // calls watch
	watched bool        // the clock is running
	began   time.Time   // when the batch did; zero if there is none
	slow    bool
	lost    bool // the batch was given up, and the lane with it
}

func newLane[I, O any](g *Group[I, O]) *lane[I, O] {
	l := &lane[I, O]{group: g, keys: make(map[string]bool)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *lane[I, O]) work() {
	for l.begin() {
		l.group.settings.Run(l.ctx, l.items, l.outcomes)
		if !l.end() {
			return
		}
	}
}

// begin takes the next batch. It returns false if there is none.
func (l *lane[I, O]) begin() bool {
	// Whoever was told an outcome this moment may be about to come back with another
	// item. If nobody else wants the processor, this costs nothing.
	runtime.Gosched()
	g := l.group
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.lanes--
		g.spare = l
		return false
	}
	l.takeLocked()
	l.began = time.Now()
	l.watchLocked(g.settings.Slow)
	return true
}

// takeLocked moves items out of the queue.
func (l *lane[I, O]) takeLocked() {
	g := l.group
	rest := g.queue[:0]
	for _, c := range g.queue {
		key := g.settings.Key(c.item)
		if len(l.batch) == g.settings.Most || l.keys[key] {
			rest = append(rest, c)
			continue
		}
		l.keys[key], c.sent = true, true
		l.batch, l.items = append(l.batch, c), append(l.items, c.item)
	}
	clear(g.queue[len(rest):])
	g.queue = rest
	l.outcomes = slices.Grow(l.outcomes, len(l.batch))[:len(l.batch)]
}

// end tells everybody their outcome. It returns false if the lane was given up.
func (l *lane[I, O]) end() bool {
	g := l.group
	g.mu.Lock()
	late := l.deliverLocked()
	kept := !l.lost
	if kept {
		l.retireLocked()
	}
	g.mu.Unlock()
	for _, i := range late {
		g.settings.Late(l.items[i], l.outcomes[i])
	}
	clear(l.keys)
	clear(l.batch)
	clear(l.items)
	clear(l.outcomes)
	l.batch, l.items, l.outcomes = l.batch[:0], l.items[:0], l.outcomes[:0]
	return kept
}

// deliverLocked tells the callers, and returns which of them have gone.
func (l *lane[I, O]) deliverLocked() (late []int) {
	for i, c := range l.batch {
		if l.lost || c.left { // a call that was given up may be another's already
			late = append(late, i)
			continue
		}
		c.outcome = l.outcomes[i]
		c.done <- struct{}{}
	}
	return late
}

// retireLocked makes the lane ready for another batch.
func (l *lane[I, O]) retireLocked() {
	l.began = time.Time{}
	l.hurryLocked()
	if l.ctx.Err() != nil {
		l.ctx, l.cancel = context.WithCancel(context.Background())
	}
}

// watchLocked has the clock look after the batch in a while, unless it will do so sooner.
func (l *lane[I, O]) watchLocked(after time.Duration) {
	switch {
	case l.watched:
	case l.clock == nil:
		l.clock = time.AfterFunc(after, l.watch)
	default:
		l.clock.Reset(after)
	}
	l.watched = true
}

// watch does what a batch that takes long calls for.
func (l *lane[I, O]) watch() {
	g, s := l.group, &l.group.settings
	g.mu.Lock()
	defer g.mu.Unlock()
	l.watched = false
	if l.began.IsZero() {
		return
	}
	switch took := time.Since(l.began); {
	case took < s.Slow:
		l.watchLocked(s.Slow - took)
	case took < s.Longest:
		l.slow = true
		g.slow++
		g.openLocked()
		l.watchLocked(s.Longest - took)
	case took < s.Longest+s.Grace:
		l.cancel()
		l.watchLocked(s.Longest + s.Grace - took)
	default:
		l.giveUpLocked()
	}
}

// giveUpLocked leaves the batch behind. Its outcomes will be late, if they come.
func (l *lane[I, O]) giveUpLocked() {
	g := l.group
	l.lost = true
	l.cancel()
	for _, c := range l.batch {
		if !c.left {
			g.leftLocked(c)
			c.outcome = g.settings.Silence
			c.done <- struct{}{}
		}
	}
	g.lanes--
	l.hurryLocked()
	g.openLocked()
}

// hurryLocked counts the lane as slow no more.
func (l *lane[I, O]) hurryLocked() {
	if !l.slow {
		return
	}
	l.slow = false
	l.group.slow--
	if l.clock.Stop() { // it was set for a later moment than the next batch needs
		l.watched = false
	}
}
