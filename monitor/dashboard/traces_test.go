package dashboard

import (
	"context"
	"database/sql"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/XSAM/otelsql"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtual"
	sqllockotel "github.com/sqllock/sqllock/monitor/otel"
	"github.com/sqllock/sqllock/observe"
)

// A traced registry has a database whose driver otelsql wraps, and an observer of sqllockotel.
type traced struct {
	*testing.T
	network  *flaky.Connector
	registry *sqllock.Registry
	tracer   trace.Tracer
	spans    *tracetest.SpanRecorder
}

func newTraced(t *testing.T) *traced {
	t.Helper()
	f := &traced{T: t, spans: tracetest.NewSpanRecorder()}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(f.spans))
	f.tracer = provider.Tracer("test")
	db := virtual.Migrated(t, dialect.Spring7)
	f.network = flaky.New(db.DB.Driver(), db.DSN)
	pool := otelsql.OpenDB(f.network, otelsql.WithTracerProvider(provider))
	t.Cleanup(func() { must(t, pool.Close()) })
	f.registry = openTraced(t, provider, pool, dialect.SQLite())
	return f
}

func openTraced(t *testing.T, provider trace.TracerProvider, pool *sql.DB, d dialect.Dialect) *sqllock.Registry {
	t.Helper()
	repository := check.Value(sqllock.NewRepository(t.Context(), pool, d, nil))(t)
	observer := check.Value(sqllockotel.New(&sqllockotel.Options{TracerProvider: provider}))(t)
	registry := check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: ttl, Observers: []*observe.Observer{observer}, NoRenew: true}))(t)
	t.Cleanup(func() { must(t, registry.Close(context.Background())) })
	return registry
}

// under runs fn in a span, and returns it.
func (f *traced) under(name string, fn func(context.Context)) trace.Span {
	f.Helper()
	ctx, span := f.tracer.Start(f.Context(), name)
	defer span.End()
	fn(ctx)
	return span
}

// childrenOf returns the ended spans under a span, directly.
func (f *traced) childrenOf(parent trace.SpanContext) (spans []sdktrace.ReadOnlySpan) {
	for _, span := range f.spans.Ended() {
		if span.Parent().SpanID() == parent.SpanID() {
			spans = append(spans, span)
		}
	}
	return spans
}

// acquisition returns the one span of an acquisition under a span.
func (f *traced) acquisition(parent trace.Span) sdktrace.ReadOnlySpan {
	f.Helper()
	var found []sdktrace.ReadOnlySpan
	for _, span := range f.childrenOf(parent.SpanContext()) {
		if span.Name() == "sqllock.acquire" {
			found = append(found, span)
		}
	}
	check.Equal(f, "spans of acquisitions", len(found), 1)
	return found[0]
}

// statements returns how many spans of otelsql there are directly under a span.
func (f *traced) statements(parent trace.SpanContext) (n int) {
	for _, span := range f.childrenOf(parent) {
		if strings.HasPrefix(span.Name(), "sql.") {
			n++
		}
	}
	return n
}

func attributesOf(span sdktrace.ReadOnlySpan) map[string]attribute.Value {
	all := make(map[string]attribute.Value)
	for _, kv := range span.Attributes() {
		all[string(kv.Key)] = kv.Value
	}
	return all
}

// TestTracesNest has the statements of an acquisition under its span; the work and the release are
// under the span of the caller.
func TestTracesNest(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newTraced(t)
		lease, request, acquire := f.nests(f.statements)
		if !slices.Contains(names(f.childrenOf(request.SpanContext())), "work") {
			t.Error("the work is not under the request")
		}
		got := attributesOf(acquire)
		want := map[string]attribute.Value{
			"sqllock.key": attribute.StringValue("orders/42"), "sqllock.ttl": attribute.Float64Value(ttl.Seconds()),
			"sqllock.wait": got["sqllock.wait"], "sqllock.queued": got["sqllock.queued"], // negative; some nanoseconds
			"sqllock.outcome": attribute.StringValue("acquired"), "sqllock.attempts": attribute.IntValue(1), "sqllock.polls": attribute.IntValue(0),
			"sqllock.batched": attribute.BoolValue(false), "sqllock.reentered": attribute.BoolValue(false), "sqllock.handed_on": attribute.BoolValue(false),
			"sqllock.holder": attribute.StringValue(lease.Holder()), "sqllock.token": attribute.Int64Value(lease.Token()),
		}
		for name, value := range want {
			if got[name] != value {
				t.Errorf("%s is %v, want %v", name, got[name].String(), value.String())
			}
		}
		if len(got) != len(want) || got["sqllock.wait"].AsFloat64() >= 0 || acquire.SpanKind() != trace.SpanKindInternal {
			t.Errorf("%v", acquire.Attributes())
		}
	})
}

// nests acquires a lock and releases it. of returns how many spans of statements are under a span: they are
// under that of the acquisition, and under that of Unlock's caller.
func (f *traced) nests(of func(trace.SpanContext) int) (lease *sqllock.Lease, request trace.Span, acquire sdktrace.ReadOnlySpan) {
	f.Helper()
	request = f.under("request", func(ctx context.Context) {
		lease = check.Value(f.registry.Lock(ctx, "orders/42"))(f.T)
		_, work := f.tracer.Start(lease.Context(), "work")
		work.End()
	})
	acquire = f.acquisition(request)
	release := f.under("release", func(ctx context.Context) { must(f.T, lease.Unlock(ctx)) })
	acquiring, requesting, releasing := of(acquire.SpanContext()), of(request.SpanContext()), of(release.SpanContext())
	if acquiring == 0 || requesting != 0 || releasing == 0 {
		f.Errorf("%d statements are under the acquisition, %d under the request and %d under the span of Unlock's caller: %v",
			acquiring, requesting, releasing, names(f.spans.Ended()))
	}
	return lease, request, acquire
}

func names(spans []sdktrace.ReadOnlySpan) (all []string) {
	for _, span := range spans {
		all = append(all, span.Name())
	}
	return all
}

// TestAWaiterIsLinkedToItsHolder has one caller of the process wait for another, in the local queue.
func TestAWaiterIsLinkedToItsHolder(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newTraced(t)
		var lease *sqllock.Lease
		first := f.under("first", func(ctx context.Context) { lease = check.Value(f.registry.Lock(ctx, "k"))(t) })
		time.AfterFunc(time.Second, func() { _ = lease.Unlock(context.Background()) })
		second := f.under("second", func(ctx context.Context) {
			must(t, check.Value(f.registry.Lock(ctx, "k"))(t).Unlock(ctx))
		})
		waited := f.acquisition(second)
		got := attributesOf(waited)
		if got["sqllock.held_by"].AsString() != lease.Holder() || got["sqllock.queued"].AsFloat64() != 1 {
			t.Errorf("%v", waited.Attributes())
		}
		links := waited.Links()
		if len(links) != 1 || links[0].SpanContext.SpanID() != f.acquisition(first).SpanContext().SpanID() {
			t.Errorf("linked to %+v", links)
		}
	})
}

// TestErrorsAndLossesAreInTheTrace has the database fail, and a lease be lost.
func TestErrorsAndLossesAreInTheTrace(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		f := newTraced(t)
		f.network.Follow(func(context.Context, flaky.Moment) error { return errGone })
		failed := f.acquisition(f.under("failed", func(ctx context.Context) { _, _ = f.registry.TryLock(ctx, "k") }))
		f.network.Follow(nil)
		if failed.Status().Code != codes.Error || attributesOf(failed)["sqllock.outcome"].AsString() != "error" || len(failed.Events()) != 1 {
			t.Errorf("%+v, %v, %v", failed.Status(), failed.Attributes(), failed.Events())
		}
		lost := f.under("lost", func(ctx context.Context) {
			lease := check.Value(f.registry.Lock(ctx, "k"))(t)
			if _, err := f.registry.TryLock(ctx, "k"); err == nil {
				t.Error("acquired twice")
			}
			<-lease.Context().Done()
			synctest.Wait()
		})
		for _, span := range f.spans.Ended() {
			if span.SpanContext().SpanID() != lost.SpanContext().SpanID() {
				continue
			}
			if events := span.Events(); len(events) != 1 || events[0].Name != "sqllock.lease.lost" {
				t.Errorf("%+v", events)
			}
		}
		for _, span := range f.childrenOf(lost.SpanContext()) {
			if span.Name() == "sqllock.acquire" && span.Status().Code == codes.Error {
				t.Error("a lock that is held is no error")
			}
		}
	})
}
