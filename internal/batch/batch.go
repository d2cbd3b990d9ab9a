// Package batch combines calls that arrive while one is in flight. An idle batcher runs a call immediately; batching
// adds no delay. Databases do the same with group commits.
package batch

import (
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// Settings configure a [Batcher].
type Settings[I, O any] struct {
	// One runs a batch of one item. Many runs a batch of several, and puts the outcome of each into outcomes, in
	// order. ctx belongs to the batch, not to a caller, and ends after Timeout. Neither slice may be used after Many
	// has returned.
	One  func(ctx context.Context, item I) Outcome[O]
	Many func(ctx context.Context, items []I, outcomes []Outcome[O])
	// KeepsValues, unless it is nil, reports whether ctx is to have the values of the caller's context if the batch
	// has one item.
	KeepsValues func() bool
	// Key returns the key of an item. A batch has at most one item of each key.
	Key func(I) string
	// OnLeave, if not nil, is called with an item whose caller has left while it is in a batch, because the caller's
	// context ended or the batch timed out. It is called with a lock held and must not use the batcher. What it returns
	// is called with the outcome of the item, and the next batch waits until that returns.
	OnLeave func(I) (onLate func(Outcome[O]))
	// Max is the maximum number of items of a batch.
	Max int
	// SlowAfter is how long a batch may take before another one may start beside it.
	SlowAfter time.Duration
	// Lanes is the maximum number of batches in flight.
	Lanes int
	// Timeout is how long a batch may take, and Grace how much longer it may need to notice the end of its context.
	// After that the batch is abandoned, and its callers get TimedOut. If it ends within Grace, its outcomes count.
	Timeout, Grace time.Duration
	TimedOut       Outcome[O]
	// IsFinal reports whether an error counts although the batch has timed out. Others are the end of ctx in the
	// words of a driver, and are replaced by that of TimedOut.
	IsFinal func(error) bool
}

// An Outcome is what became of one item.
type Outcome[O any] struct {
	Value O
	Err   error
	// Unknown reports whether the item may have been done although there is an error, or no answer to the first of
	// two tries.
	Unknown bool
	// Resent reports whether what was sent for the item was sent before, without an answer. The outcome is that of
	// the last time; an earlier one may still be done.
	Resent bool
}

// A Batcher batches items. All methods are safe for concurrent use. It has goroutines only while there are items.
type Batcher[I, O any] struct {
	settings Settings[I, O]

	mu    sync.Mutex
	queue []*call[I, O]
	lanes int         // the number of batches in flight
	slow  int         // how many of these are slow
	spare *lane[I, O] // an idle lane for the next batch

	calls sync.Pool // of *call[I, O] that are no longer in use
}

type call[I, O any] struct {
	ctx     context.Context // of the caller
	item    I
	done    chan struct{} // receives one value when outcome is set
	outcome Outcome[O]
	sent    bool             // it is in a batch
	onLate  func(Outcome[O]) // its caller has left, unless it is nil
}

// New returns a batcher.
func New[I, O any](settings Settings[I, O]) *Batcher[I, O] {
	b := &Batcher[I, O]{settings: settings}
	b.calls.New = func() any { return &call[I, O]{done: make(chan struct{}, 1)} }
	return b
}

// Do runs item, in a batch with others if one is in flight, and returns its outcome. If ctx ends first, Do returns
// ctx's error immediately. Unknown then reports whether the item is in a batch: if it is, onLate gets its outcome; if
// not, it is never run.
func (b *Batcher[I, O]) Do(ctx context.Context, item I) Outcome[O] {
	c := b.calls.Get().(*call[I, O])
	c.ctx, c.item = ctx, item
	b.mu.Lock()
	b.queue = append(b.queue, c)
	b.openLocked()
	b.mu.Unlock()
	select {
	case <-c.done:
		outcome := c.outcome
		*c = call[I, O]{done: c.done}
		b.calls.Put(c)
		return outcome
	case <-ctx.Done():
		return b.leave(ctx, c)
	}
}

func (b *Batcher[I, O]) leave(ctx context.Context, c *call[I, O]) Outcome[O] {
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-c.done: // the outcome came at the same time
		return c.outcome
	default:
	}
	if c.sent {
		c.onLate = b.leftLocked(c)
	}
	b.queue = slices.DeleteFunc(b.queue, func(other *call[I, O]) bool { return other == c })
	return Outcome[O]{Err: ctx.Err(), Unknown: c.sent}
}

func (b *Batcher[I, O]) leftLocked(c *call[I, O]) (onLate func(Outcome[O])) {
	if b.settings.OnLeave == nil {
		return func(Outcome[O]) {}
	}
	return b.settings.OnLeave(c.item)
}

// openLocked opens a lane if all that are open run slow batches.
func (b *Batcher[I, O]) openLocked() {
	if len(b.queue) == 0 || b.lanes > b.slow || b.lanes >= b.settings.Lanes {
		return
	}
	l := b.spare
	b.spare = nil
	if l == nil {
		l = newLane(b)
	}
	b.lanes++
	go l.work()
}

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
	lost    bool               // the batch was abandoned, and the lane with it
	onLate  []func(Outcome[O]) // then, of each call of the batch: one that timed out may be in use for another item
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
			ctx := l.ctx
			if s.KeepsValues != nil && s.KeepsValues() {
				ctx = valuesContext{l.ctx, l.caller}
			}
			l.outcomes[0] = s.One(ctx, l.items[0])
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
	if other := yield.Load(); other != nil {
		(*other)()
	} else {
		runtime.Gosched()
	}
	b := l.batcher
	b.mu.Lock()
	defer b.mu.Unlock()
	if len(b.queue) == 0 {
		b.lanes--
		b.spare = l
		return false
	}
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
	l.began = time.Now()
	l.watchLocked(b.settings.SlowAfter)
	return true
}

// end delivers the outcomes. It returns false if the lane was abandoned.
func (l *lane[I, O]) end() bool {
	b := l.batcher
	b.mu.Lock()
	late := l.onLate
	if !l.lost {
		for i, c := range l.batch {
			if c.onLate != nil {
				late = slices.Grow(late, len(l.batch))[:len(l.batch)]
				late[i] = c.onLate
				continue
			}
			c.outcome = l.outcomes[i]
			c.done <- struct{}{}
		}
	}
	kept := !l.lost
	if kept { // for another batch
		l.began = time.Time{}
		if l.slow {
			l.setFastLocked()
		}
		if l.ctx.Err() != nil {
			l.ctx, l.cancel = context.WithCancel(context.Background())
		}
	}
	b.mu.Unlock()
	for i, onLate := range late {
		if onLate != nil {
			onLate(l.outcomes[i])
		}
	}
	l.caller = nil
	clear(l.keys)
	clear(l.batch)
	clear(l.items)
	clear(l.outcomes)
	l.batch, l.items, l.outcomes = l.batch[:0], l.items[:0], l.outcomes[:0]
	return kept
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
// onLate.
func (l *lane[I, O]) abandonLocked() {
	b := l.batcher
	l.lost = true
	l.cancel()
	for _, c := range l.batch {
		if c.onLate != nil {
			l.onLate = append(l.onLate, c.onLate)
			continue
		}
		l.onLate = append(l.onLate, b.leftLocked(c))
		c.outcome = b.settings.TimedOut
		c.done <- struct{}{}
	}
	b.lanes--
	if l.slow {
		l.setFastLocked()
	}
	b.openLocked()
}

// setFastLocked no longer counts the lane as slow.
func (l *lane[I, O]) setFastLocked() {
	l.slow = false
	l.batcher.slow--
	if l.timer.Stop() { // it was set for a later time than the next batch needs
		l.watched = false
	}
}

// yield, if set, is what a test does in place of runtime.Gosched.
var yield atomic.Pointer[func()]

// ReplaceYield replaces what a batcher does to let other goroutines run that are ready, until restore is called. It is for
// tests in which all of these must run first, in an order that does not depend on the past.
func ReplaceYield(other func()) (restore func()) {
	before := yield.Swap(&other)
	return func() { yield.Store(before) }
}
