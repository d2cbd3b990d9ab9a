package sqllockotel

import (
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// mostHolders is how many holders are remembered: those that acquired last.
const mostHolders = 1024

// holders are the spans in which holders of this process acquired their locks. A caller that has
// waited for one of them is linked to its span, when that holder may be gone already.
type holders struct {
	mu    sync.Mutex
	spans map[string]trace.SpanContext
	order [mostHolders]string // a ring, the oldest at next
	next  int
}

func newHolders() *holders { return &holders{spans: make(map[string]trace.SpanContext)} }

func (h *holders) put(holder string, span trace.SpanContext) {
	if !span.IsValid() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if _, known := h.spans[holder]; !known {
		delete(h.spans, h.order[h.next])
		h.order[h.next] = holder
		h.next = (h.next + 1) % mostHolders
	}
	h.spans[holder] = span
}

func (h *holders) get(holder string) trace.SpanContext {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.spans[holder]
}
