package simulation

import (
	"fmt"
	"hash/fnv"
	"io"
	"sync"
	"time"
)

// A history is what has happened in a world.
type history struct {
	mu     sync.Mutex
	began  time.Time
	events []event
	closed bool // what comes after a violation explains nothing
}

func (h *history) close() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.closed = true
}

type event struct {
	at   time.Duration
	who  string
	what string
}

func (h *history) note(who, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.events = append(h.events, event{time.Since(h.began), who, what})
}

// print prints the last events, at most n.
func (h *history) print(to io.Writer, n int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	from := max(0, len(h.events)-n)
	if from > 0 {
		_, _ = fmt.Fprintf(to, "  … %d events before\n", from)
	}
	for _, e := range h.events[from:] {
		_, _ = fmt.Fprintf(to, "  %14v  %-6s %s\n", e.at, e.who, e.what)
	}
}

// sum returns a number that two histories have in common if they are the same.
func (h *history) sum() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	sum := fnv.New64a()
	for _, e := range h.events {
		_, _ = fmt.Fprintln(sum, int64(e.at), e.who, e.what)
	}
	return sum.Sum64()
}
