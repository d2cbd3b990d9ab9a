package simulation

import (
	"cmp"
	"fmt"
	"hash/fnv"
	"io"
	"slices"
	"strings"
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

// A context may end for two reasons in one instant.
var oneEnd = strings.NewReplacer("context canceled", "context ended", "context deadline exceeded", "context ended")

func (h *history) note(who, what string) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return
	}
	h.events = append(h.events, event{time.Since(h.began), who, oneEnd.Replace(what)})
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

// sum returns a number that two histories have in common if they are the same, but for the
// order of what happened in one instant.
func (h *history) sum() uint64 {
	h.mu.Lock()
	defer h.mu.Unlock()
	events := slices.Clone(h.events)
	slices.SortFunc(events, func(a, b event) int {
		return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.who, b.who), strings.Compare(a.what, b.what))
	})
	sum := fnv.New64a()
	for _, e := range events {
		_, _ = fmt.Fprintln(sum, int64(e.at), e.who, e.what)
	}
	return sum.Sum64()
}
