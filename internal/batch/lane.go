package batch

import (
	"context"
	"slices"
	"time"

	"github.com/sqllock/sqllock/internal/jitter"
)

// A lane runs one batch after the other until the queue is empty. It reuses its context, timer and buffers, so that a
// single call costs little.
type lane[I, O any] struct {
	batcher  *Batcher[I, O]
	ctx      context.Context // for the batches, until one times out
	cancel   context.CancelFunc
	batch    []*call[I, O]
	items    []I
	outcomes []Outcome[O]
	keys     map[string]bool
	caller   context.Context // of the first item

	// The rest is guarded by the batcher's mutex.
	timer   *time.Timer // calls watch
	watched bool        // the timer is running
	began   time.Time   // the start of the batch; zero if there is none
	slow    bool
	lost    bool // the batch was abandoned, and the lane with it
}

func newLane[I, O any](b *Batcher[I, O]) *lane[I, O] {
	l := &lane[I, O]{batcher: b, keys: make(map[string]bool)}
	l.ctx, l.cancel = context.WithCancel(context.Background())
	return l
}

func (l *lane[I, O]) work() {
	s := &l.batcher.settings
	for l.begin() {
		if len(l.items) == 1 {
			l.outcomes[0] = s.One(l.contextOfOne(), l.items[0])
		} else {
			s.Many(l.ctx, l.items, l.outcomes)
		}
		if l.ctx.Err() != nil {
			l.explainTimeout()
		}
		if !l.end() {
			return
		}
	}
}

// contextOfOne is the context of a batch of one item.
func (l *lane[I, O]) contextOfOne() context.Context {
	if s := &l.batcher.settings; s.KeepsValues != nil && s.KeepsValues() {
		return valuesContext{l.ctx, l.caller}
	}
	return l.ctx
}

// explainTimeout replaces what drivers say of the end of the context.
func (l *lane[I, O]) explainTimeout() {
	s := &l.batcher.settings
	for i, o := range l.outcomes {
		if o.Err != nil && !s.IsFinal(o.Err) {
			l.outcomes[i].Err = s.TimedOut.Err
		}
	}
}

// begin takes the next batch. It returns false if there is none.
func (l *lane[I, O]) begin() bool {
	// A caller of the last batch may be about to add another item. If no other goroutine is ready to run, this costs
	// nothing.
	jitter.Yield()
	b := l.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.lanes--
		b.spare = l
		return false
	}
	l.takeLocked()
	l.began = time.Now()
	l.watchLocked(b.settings.SlowAfter)
	return true
}

// takeLocked moves items out of the queue.
func (l *lane[I, O]) takeLocked() {
	b := l.batcher
	rest := b.queue[:0]
	for _, c := range b.queue {
		key := b.settings.Key(c.item)
		if len(l.batch) == b.settings.Max || l.keys[key] {
			rest = append(rest, c)
			continue
		}
		if len(l.batch) == 0 {
			l.caller = c.ctx
		}
		l.keys[key], c.sent = true, true
		l.batch, l.items = append(l.batch, c), append(l.items, c.item)
	}
	clear(b.queue[len(rest):])
	b.queue = rest
	l.outcomes = slices.Grow(l.outcomes, len(l.batch))[:len(l.batch)]
}

// end delivers the outcomes. It returns false if the lane was abandoned.
func (l *lane[I, O]) end() bool {
	b := l.batcher
	b.mu.Lock()
	late := l.deliverLocked()
	kept := !l.lost
	if kept {
		l.retireLocked()
	}
	b.mu.Unlock()
	for _, i := range late {
		b.settings.OnLate(l.items[i], l.outcomes[i])
	}
	l.caller = nil
	clear(l.keys)
	clear(l.batch)
	clear(l.items)
	clear(l.outcomes)
	l.batch, l.items, l.outcomes = l.batch[:0], l.items[:0], l.outcomes[:0]
	return kept
}

// deliverLocked gives the callers their outcomes, and returns the indexes of the items whose callers have left.
func (l *lane[I, O]) deliverLocked() (late []int) {
	for i, c := range l.batch {
		if l.lost || c.left { // a call that timed out may be in use for another item
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
	l.setFastLocked()
	if l.ctx.Err() != nil {
		l.ctx, l.cancel = context.WithCancel(context.Background())
	}
}

// watchLocked makes the timer call watch after the given time, unless it will do so earlier.
func (l *lane[I, O]) watchLocked(after time.Duration) {
	switch {
	case l.watched:
	case l.timer == nil:
		l.timer = time.AfterFunc(after, l.watch)
	default:
		l.timer.Reset(after)
	}
	l.watched = true
}

// watch opens another lane if the batch is slow, ends the batch's context at the timeout, and abandons the batch
// after the grace period.
func (l *lane[I, O]) watch() {
	b, s := l.batcher, &l.batcher.settings
	b.mu.Lock()
	defer b.mu.Unlock()
	l.watched = false
	if l.began.IsZero() {
		return
	}
	switch took := time.Since(l.began); {
	case took < s.SlowAfter:
		l.watchLocked(s.SlowAfter - took)
	case took < s.Timeout:
		l.slow = true
		b.slow++
		b.openLocked()
		l.watchLocked(s.Timeout - took)
	case took < s.Timeout+s.Grace:
		l.cancel()
		l.watchLocked(s.Timeout + s.Grace - took)
	default:
		l.abandonLocked()
	}
}

// abandonLocked gives the callers of the batch the outcome TimedOut. Its own outcomes, if they ever come, go to
// OnLate.
func (l *lane[I, O]) abandonLocked() {
	b := l.batcher
	l.lost = true
	l.cancel()
	for _, c := range l.batch {
		if !c.left {
			b.leftLocked(c)
			c.outcome = b.settings.TimedOut
			c.done <- struct{}{}
		}
	}
	b.lanes--
	l.setFastLocked()
	b.openLocked()
}

// setFastLocked no longer counts the lane as slow.
func (l *lane[I, O]) setFastLocked() {
	if !l.slow {
		return
	}
	l.slow = false
	l.batcher.slow--
	if l.timer.Stop() { // it was set for a later time than the next batch needs
		l.watched = false
	}
}
