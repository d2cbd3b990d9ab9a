// Package batch combines calls that arrive while one is in flight. An idle batcher runs a call immediately; batching
// adds no delay. Databases do the same with group commits.
package batch

import (
	"context"
	"slices"
	"sync"
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
	// context ended or the batch timed out. It is called with a lock held and must not use the batcher. OnLate
	// follows.
	OnLeave func(I)
	// OnLate is called with the outcome of an item whose caller has left. The next batch waits until it returns.
	OnLate func(I, Outcome[O])
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
	sent    bool // it is in a batch
	left    bool // its caller has left
}

// New returns a batcher.
func New[I, O any](settings Settings[I, O]) *Batcher[I, O] {
	b := &Batcher[I, O]{settings: settings}
	b.calls.New = func() any { return &call[I, O]{done: make(chan struct{}, 1)} }
	return b
}

// Do runs item, in a batch with others if one is in flight, and returns its outcome. If ctx ends first, Do returns
// ctx's error immediately. Unknown then reports whether the item is in a batch: if it is, OnLate gets its outcome; if
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
	c.left = true
	if c.sent {
		b.leftLocked(c)
	}
	b.queue = slices.DeleteFunc(b.queue, func(other *call[I, O]) bool { return other == c })
	return Outcome[O]{Err: ctx.Err(), Unknown: c.sent}
}

func (b *Batcher[I, O]) leftLocked(c *call[I, O]) {
	if b.settings.OnLeave != nil {
		b.settings.OnLeave(c.item)
	}
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
