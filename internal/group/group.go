// Package group lets things that arrive while another is being done be done
// together, as databases group commits: nothing waits for company, but whoever
// has to wait anyway travels with the others.
package group

import (
	"context"
	"slices"
	"sync"
	"time"
)

// Settings say how a group works.
type Settings[I, O any] struct {
	// Run does a batch of one or more items and puts the outcome of each into
	// outcomes, in order. It belongs to no caller. ctx ends after Longest. Neither
	// slice may be used after it has returned.
	Run func(ctx context.Context, items []I, outcomes []Outcome[O])
	// Key tells items apart: no two of one key are in a batch.
	Key func(I) string
	// Left, if set, is called when the caller of an item in a batch goes, or is told
	// Silence. It must not use the group. Late follows.
	Left func(I)
	// Late is told the outcome of an item whose caller has gone, or was told Silence.
	// The next batch waits until it returns.
	Late func(I, Outcome[O])
	// Most is how many items are in a batch at most.
	Most int
	// Slow is how long a batch may take before the next one is begun beside it,
	// and Lanes how many there are at most.
	Slow  time.Duration
	Lanes int
	// Longest is how long a batch may take, and Grace how long after that Run may
	// need to notice. Then it is left behind, and its callers are told Silence. What
	// Run makes of the end of its context is its own affair.
	Longest, Grace time.Duration
	Silence        Outcome[O]
}

// An Outcome is what became of one item.
type Outcome[O any] struct {
	Value O
	Err   error
}

// A Group gathers items. All methods are safe for concurrent use. It has
// goroutines only while there is something to do.
type Group[I, O any] struct {
	settings Settings[I, O]

	mu    sync.Mutex
	queue []*call[I, O]
	lanes int         // batches that are being run
	slow  int         // of these, how many have taken long already
	spare *lane[I, O] // one that has nothing to do just now

	calls sync.Pool // of *call[I, O] that nobody knows any more
}

type call[I, O any] struct {
	item    I
	done    chan struct{} // has room for the one message that outcome is there
	outcome Outcome[O]
	sent    bool // it is in a batch
	left    bool // its caller has gone
}

// New returns a group.
func New[I, O any](settings Settings[I, O]) *Group[I, O] {
	g := &Group[I, O]{settings: settings}
	g.calls.New = func() any { return &call[I, O]{done: make(chan struct{}, 1)} }
	return g
}

// Do has item done with others and returns its outcome. If ctx ends first, Do
// returns its error at once: sent says that the item is under way all the same,
// and that Late will be told; else it never is.
func (g *Group[I, O]) Do(ctx context.Context, item I) (outcome Outcome[O], sent bool) {
	c := g.calls.Get().(*call[I, O])
	c.item = item
	g.mu.Lock()
	g.queue = append(g.queue, c)
	g.openLocked()
	g.mu.Unlock()
	select {
	case <-c.done:
		outcome = c.outcome
		*c = call[I, O]{done: c.done}
		g.calls.Put(c)
		return outcome, true
	case <-ctx.Done():
		return g.leave(ctx, c)
	}
}

func (g *Group[I, O]) leave(ctx context.Context, c *call[I, O]) (outcome Outcome[O], sent bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	select {
	case <-c.done: // both at once
		return c.outcome, true
	default:
	}
	c.left = true
	if c.sent {
		g.leftLocked(c)
	}
	g.queue = slices.DeleteFunc(g.queue, func(other *call[I, O]) bool { return other == c })
	return Outcome[O]{Err: ctx.Err()}, c.sent
}

func (g *Group[I, O]) leftLocked(c *call[I, O]) {
	if g.settings.Left != nil {
		g.settings.Left(c.item)
	}
}

// openLocked opens a lane for those who would wait behind none but slow batches.
func (g *Group[I, O]) openLocked() {
	if len(g.queue) == 0 || g.lanes > g.slow || g.lanes >= g.settings.Lanes {
		return
	}
	l := g.spare
	g.spare = nil
	if l == nil {
		l = newLane(g)
	}
	g.lanes++
	go l.work()
}
