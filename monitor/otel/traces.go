package sqllockotel

import (
	"context"
	"sync/atomic"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqllock/sqllock/monitor/internal/measure"
	"github.com/sqllock/sqllock/observe"
)

// traces make the spans.
type traces struct {
	tracer  trace.Tracer
	holders *holders
}

// A spanContext has the span of an acquisition until that has ended, and then what the caller's
// context has. So the statements of the acquisition are children of its span, and the work under the
// lease, whose context is made from this one, is not.
type spanContext struct {
	context.Context // of the caller

	within atomic.Pointer[context.Context] // nil once the span has ended
}

// Value implements context.Context.
func (c *spanContext) Value(key any) any {
	if within := c.within.Load(); within != nil {
		return (*within).Value(key)
	}
	return c.Context.Value(key)
}

// acquire begins a span.
func (t *traces) acquire(ctx context.Context, e observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
	inner, span := t.tracer.Start(ctx, "sqllock.acquire", trace.WithAttributes(
		attribute.String("sqllock.key", measure.Text(e.Key)), attribute.Float64("sqllock.wait", e.Wait.Seconds()), attribute.Float64("sqllock.ttl", e.TTL.Seconds()),
	))
	within := &spanContext{Context: ctx}
	within.within.Store(&inner)
	return within, func(e observe.AcquireEnd) {
		if span.IsRecording() {
			t.describe(span, e)
		}
		span.End()
		within.within.Store(nil)
		if e.Holder != "" && !e.Reentered {
			t.holders.put(e.Holder, span.SpanContext())
		}
	}
}

// describe sets what is known at the end of an acquisition.
func (t *traces) describe(span trace.Span, e observe.AcquireEnd) {
	attrs := []attribute.KeyValue{
		attribute.String("sqllock.outcome", string(e.Outcome)), attribute.Float64("sqllock.queued", e.Queued.Seconds()),
		attribute.Int("sqllock.attempts", e.Attempts), attribute.Int("sqllock.polls", e.Polls),
		attribute.Bool("sqllock.batched", e.Batched),
	}
	if e.Err == nil {
		attrs = append(attrs, attribute.String("sqllock.holder", e.Holder), attribute.Int64("sqllock.token", e.Token),
			attribute.Bool("sqllock.reentered", e.Reentered), attribute.Bool("sqllock.handed_on", e.HandedOn))
	}
	if e.HeldBy != "" {
		attrs = append(attrs, attribute.String("sqllock.held_by", measure.Text(e.HeldBy)))
		if holder := t.holders.get(e.HeldBy); holder.IsValid() {
			span.AddLink(trace.Link{SpanContext: holder, Attributes: []attribute.KeyValue{attribute.String("sqllock.held_by", measure.Text(e.HeldBy))}})
		}
	}
	span.SetAttributes(attrs...)
	if e.Outcome == observe.OutcomeError || e.Outcome == observe.OutcomeLost {
		span.RecordError(e.Err)
		span.SetStatus(codes.Error, e.Err.Error())
	}
}

// leaseEnd adds an event to the span of the caller, if that has not ended, when its lease is lost.
func (t *traces) leaseEnd(ctx context.Context, e observe.LeaseEnd) {
	span := trace.SpanFromContext(ctx)
	if !e.Reason.Lost() || !span.IsRecording() {
		return
	}
	span.AddEvent("sqllock.lease.lost", trace.WithAttributes(
		attribute.String("sqllock.key", measure.Text(e.Key)), attribute.String("sqllock.holder", e.Holder), attribute.Int64("sqllock.token", e.Token),
		attribute.String("sqllock.reason", string(e.Reason)), attribute.Float64("sqllock.held", e.Held.Seconds()),
	))
}
