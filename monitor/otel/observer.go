// Package sqllockotel traces and measures the locks of a sqllock registry with OpenTelemetry.
//
//	observer, err := sqllockotel.New(nil) // the global providers
//	if err != nil {
//		return err
//	}
//	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
//		Observers: []*observe.Observer{observer},
//	})
//
// docs/observability.md of sqllock has all metrics and attributes with their meanings. Package
// sqllockprom has the same metrics for Prometheus.
package sqllockotel

import (
	"context"

	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/metric"
	"go.opentelemetry.io/otel/trace"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/observe"
)

// scope is the name of the tracer and of the meter.
const scope = "github.com/sqllock/sqllock/monitor/otel"

// Options are the settings of an observer. A zero field means its default.
type Options struct {
	// TracerProvider and MeterProvider are the global ones unless they are set.
	TracerProvider trace.TracerProvider
	MeterProvider  metric.MeterProvider

	// Lock, if set, maps keys to the attribute "lock" of the metrics about locks. It must return
	// few different names: each makes about forty time series,
	// and some twenty more for each further outcome of a call and end of a lease. By default there is no such
	// attribute. Spans have the key in any case.
	// For a permit or a reader, key is that of the semaphore or the read-write lock.
	Lock func(key string) string

	// Rows, if set, is a repository whose rows are counted for sqllock.rows, at most every ten
	// seconds, by [sqllock.Repository.Count]. It has five seconds; after a count that takes long there is a
	// pause of ten times that. If it fails, sqllock.rows.failed is 1. Set it in one process, not in all that
	// share the table. By default the table is not read.
	Rows *sqllock.Repository
}

// New returns an observer that makes a span for each call that asks for a lock, and measures what
// the registry does. opts may be nil. One observer may serve several registries. The error is that
// of the meter provider.
func New(opts *Options) (*observe.Observer, error) {
	var o Options
	if opts != nil {
		o = *opts
	}
	if o.TracerProvider == nil {
		o.TracerProvider = otel.GetTracerProvider()
	}
	if o.MeterProvider == nil {
		o.MeterProvider = otel.GetMeterProvider()
	}
	m, err := newMetrics(o.MeterProvider.Meter(scope), o)
	if err != nil {
		return nil, err
	}
	t := &traces{tracer: o.TracerProvider.Tracer(scope), holders: newHolders()}
	return &observe.Observer{
		Acquire: func(ctx context.Context, e observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
			within, endSpan := t.acquire(ctx, e)
			measure := m.Acquire(within, e)
			return within, func(e observe.AcquireEnd) {
				measure(e) // while the context has the span, for exemplars
				endSpan(e)
			}
		},
		LeaseEnd: func(ctx context.Context, e observe.LeaseEnd) {
			m.LeaseEnd(ctx, e)
			t.leaseEnd(ctx, e)
		},
		Renewal:  m.Renewal,
		Election: m.Elections.Changed,
		JobRun:   m.Jobs.Called,
	}, nil
}
