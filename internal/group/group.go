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
	// Run does a batch of one or more items and returns an outcome for each, in
	// order. It belongs to no caller, and must end by itself.
	Run func([]I) []Outcome[O]
	// Key tells items apart: no two of one key are in a batch.
	Key func(I) string
	// Late is told the outcome of an item whose caller has left.
	Late func(I, Outcome[O])
	// Most is how many items are in a batch at most.
	Most int
	// Slow is how long a batch may take before the next one is begun beside it,
	// and Lanes how many there are at most.
	Slow  time.Duration
	Lanes int
}

// An Outcome is what became of one item.
type Outcome[O any] struct {
	Value O
	Err   error
}

// A Group gathers items. All methods are safe for concurrent use.
type Group[I, O any] struct {
	settings Settings[I, O]

	mu    sync.Mutex
	queue []*call[I, O]
	lanes int // batches that are being run
}

type call[I, O any] struct {
	item    I
	done    chan struct{}
	outcome Outcome[O]
	sent    bool // it is in a batch
	left    bool // its caller has gone
}

// New returns a group.
func New[I, O any](settings Settings[I, O]) *Group[I, O] {
	return &Group[I, O]{settings: settings}
}

// Do has item done with others and returns its outcome. If ctx ends first, Do
// returns its error at once: sent says that the item is under way all the same,
// and that Late will be told; else it never is.
func (g *Group[I, O]) Do(ctx context.Context, item I) (outcome Outcome[O], sent bool) {
	c := &call[I, O]{item: item, done: make(chan struct{})}
	g.mu.Lock()
	g.queue = append(g.queue, c)
	if g.lanes == 0 {
		g.lanes++
		go g.work()
	}
	g.mu.Unlock()
	select {
	case <-c.done:
		return c.outcome, true
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
	g.queue = slices.DeleteFunc(g.queue, func(other *call[I, O]) bool { return other == c })
	return Outcome[O]{Err: ctx.Err()}, c.sent
}

// work runs batches until nobody waits.
func (g *Group[I, O]) work() {
	for {
		batch := g.take()
		if batch == nil {
			return
		}
		slow := time.AfterFunc(g.settings.Slow, g.open)
		items := make([]I, len(batch))
		for i, c := range batch {
			items[i] = c.item
		}
		outcomes := g.settings.Run(items)
		slow.Stop()
		g.deliver(batch, outcomes)
	}
}

// take takes the next batch out of the queue, or ends the lane if there is none.
func (g *Group[I, O]) take() (batch []*call[I, O]) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.lanes--
		return nil
	}
	if len(g.queue) == 1 {
		batch, g.queue = g.queue, nil
		batch[0].sent = true
		return batch
	}
	keys, rest := make(map[string]bool, len(g.queue)), g.queue[:0:0]
	for _, c := range g.queue {
		key := g.settings.Key(c.item)
		if len(batch) == g.settings.Most || keys[key] {
			rest = append(rest, c)
			continue
		}
		keys[key], c.sent = true, true
		batch = append(batch, c)
	}
	g.queue = rest
	return batch
}

// open begins another lane for those who wait behind a slow batch.
func (g *Group[I, O]) open() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) > 0 && g.lanes < g.settings.Lanes {
		g.lanes++
		go g.work()
	}
}

func (g *Group[I, O]) deliver(batch []*call[I, O], outcomes []Outcome[O]) {
	var late []*call[I, O]
	g.mu.Lock()
	for i, c := range batch {
		c.outcome = outcomes[i]
		if c.left {
			late = append(late, c)
		}
		close(c.done)
	}
	g.mu.Unlock()
	for _, c := range late {
		g.settings.Late(c.item, c.outcome)
	}
}
