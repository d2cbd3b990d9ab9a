package dashboard

import (
	"testing"

	"github.com/exaring/otelpgx"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

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
	f.nests(f.ofPgx)
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
