package dashboard

import (
	"context"
	"io"
	"log/slog"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/fakedb"
	sqllockotel "github.com/sqllock/sqllock/monitor/otel"
	sqllockprom "github.com/sqllock/sqllock/monitor/prometheus"
	"github.com/sqllock/sqllock/observe"
)

// observed are observers to measure the cost of, as an application has them: the log at level Info,
// every span sampled and dropped.
func observed(tb testing.TB) map[string]*observe.Observer {
	tb.Helper()
	collector := sqllockprom.New(nil)
	must(tb, prometheus.NewRegistry().Register(collector))
	otel := check.Value(sqllockotel.New(&sqllockotel.Options{
		TracerProvider: sdktrace.NewTracerProvider(), MeterProvider: metric.NewMeterProvider(metric.WithReader(metric.NewManualReader())),
	}))(tb)
	return map[string]*observe.Observer{
		"slog": observe.SlogObserver(slog.New(slog.NewTextHandler(io.Discard, nil))), "prometheus": collector.Observer(), "otel": otel,
	}
}

// BenchmarkPair measures a pair of Lock and Unlock over a driver that answers at once, with no
// observer, with each, and with all three.
func BenchmarkPair(b *testing.B) {
	of := observed(b)
	for _, c := range []struct {
		name      string
		observers []*observe.Observer
	}{
		{"none", nil},
		{"empty", []*observe.Observer{{}}},
		{"slog", []*observe.Observer{of["slog"]}},
		{"prometheus", []*observe.Observer{of["prometheus"]}},
		{"otel", []*observe.Observer{of["otel"]}},
		{"all", []*observe.Observer{of["slog"], of["prometheus"], of["otel"]}},
	} {
		b.Run(c.name, func(b *testing.B) {
			pair := newPair(b, c.observers)
			pair()
			b.ReportAllocs()
			for b.Loop() {
				pair()
			}
		})
	}
}

// newPair returns a function that locks and unlocks.
func newPair(tb testing.TB, observers []*observe.Observer) func() {
	tb.Helper()
	db := fakedb.Open()
	tb.Cleanup(func() { db.Close() })
	repository := check.Value(sqllock.NewRepository(tb.Context(), db, dialect.Postgres(), &sqllock.RepositoryOptions{
		Layout: dialect.Spring7, Isolation: sqllock.Autocommit,
	}))(tb)
	registry := check.Value(sqllock.NewRegistry(repository, &sqllock.RegistryOptions{Observers: observers, NoRenew: true}))(tb)
	ctx, cancel := context.WithCancel(tb.Context())
	tb.Cleanup(cancel)
	return func() {
		must(tb, check.Value(registry.Lock(ctx, "orders/42"))(tb).Unlock(ctx))
	}
}

// leastAllocs returns what a function allocates, the least of several counts: after a collection of
// garbage, pools are filled again.
func leastAllocs(fn func()) float64 {
	least := testing.AllocsPerRun(1000, fn)
	for range 4 {
		least = min(least, testing.AllocsPerRun(1000, fn))
	}
	return least
}

// TestObserversThatAreNotTheLocksCostNothing counts what a pair allocates without observers, and with
// one that has no function for it. It has a limit for what three observers add.
func TestObserversThatAreNotTheLocksCostNothing(t *testing.T) {
	of := observed(t)
	count := func(observers ...*observe.Observer) float64 { return leastAllocs(newPair(t, observers)) }
	none, empty := count(), count(new(observe.Observer))
	all := count(of["slog"], of["prometheus"], of["otel"])
	t.Logf("%v allocations a pair without observers, %v with three", none, all)
	if empty > none || all > none+50 {
		t.Errorf("%v allocations without observers, %v with an empty one, %v with three", none, empty, all)
	}
}
