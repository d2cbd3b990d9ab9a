package dashboard

import (
	"context"
	"testing"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
)

// TestSpansOfOtelpgxNest has otelpgx trace the connections to PostgreSQL: its spans of the statements are
// under that of the acquisition, and under the span of Unlock's caller.
func TestSpansOfOtelpgxNest(t *testing.T) {
	t.Parallel()
	server := dbtest.Postgres(t)
	must(t, migrations.Up(t.Context(), server.DB.DB, server.Dialect, nil))
	f := &traced{T: t, spans: tracetest.NewSpanRecorder()}
	provider := sdktrace.NewTracerProvider(sdktrace.WithSpanProcessor(f.spans))
	f.tracer = provider.Tracer("test")
	config, err := pgx.ParseConfig(server.DSN)
	must(t, err)
	config.Tracer = otelpgx.NewTracer(otelpgx.WithTracerProvider(provider))
	pool := stdlib.OpenDB(*config)
	t.Cleanup(func() { must(t, pool.Close()) })
	f.registry = openTraced(t, provider, pool, server.Dialect)

	var lease *sqllock.Lease
	request := f.under("request", func(ctx context.Context) {
		lease, err = f.registry.Lock(ctx, "orders/42")
		must(t, err)
	})
	acquire := f.acquisition(request)
	if n := f.ofPgx(acquire.SpanContext()); n == 0 {
		t.Errorf("no statement is under the acquisition: %v", names(f.spans.Ended()))
	}
	if n := f.ofPgx(request.SpanContext()); n != 0 {
		t.Errorf("%d statements are under the request", n)
	}
	release := f.under("release", func(ctx context.Context) { must(t, lease.Unlock(ctx)) })
	if n := f.ofPgx(release.SpanContext()); n == 0 {
		t.Errorf("no statement is under the span of Unlock's caller: %v", names(f.spans.Ended()))
	}
}

// ofPgx returns how many spans of statements there are directly under a span: those of clients, which
// sqllock's are not.
func (f *traced) ofPgx(parent trace.SpanContext) (n int) {
	for _, span := range f.childrenOf(parent) {
		if span.SpanKind() == trace.SpanKindClient {
			n++
		}
	}
	return n
}
