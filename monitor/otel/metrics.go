package sqllockotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sqllock/sqllock/monitor/internal/measure"
)

func newMetrics(meter metric.Meter, o Options) (*measure.Metrics, error) {
	m := &measure.Metrics{Lock: o.Lock}
	var errs [12]error
	seconds := func(name, text string, bounds []float64, label string) (func(context.Context, float64, ...string), error) {
		h, err := meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(bounds...))
		return func(ctx context.Context, took float64, labels ...string) {
			h.Record(ctx, took, with(labels, label, "lock"))
		}, err
	}
	m.Acquired, errs[0] = seconds("sqllock.acquire.duration", "How long callers that asked for a lock waited for the answer.", measure.Buckets, "outcome")
	m.Held, errs[1] = seconds("sqllock.hold.duration", "How long locks were held.", measure.HoldBuckets, "end")
	m.Renewed, errs[2] = seconds("sqllock.renewal.duration", "How long automatic renewals of all leases took.", measure.Buckets, "outcome")
	leases, err := meter.Int64UpDownCounter("sqllock.leases.held", metric.WithUnit("{lease}"),
		metric.WithDescription("Locks that this process holds."))
	m.Leases, errs[3] = func(ctx context.Context, n int, labels ...string) { leases.Add(ctx, int64(n), with(labels, "lock")) }, err
	waiters, err := meter.Int64UpDownCounter("sqllock.waiters", metric.WithUnit("{caller}"),
		metric.WithDescription("Callers of this process that wait for a lock."))
	m.Waiters, errs[4] = func(ctx context.Context, n int, labels ...string) { waiters.Add(ctx, int64(n), with(labels, "lock")) }, err
	lost, err := meter.Int64Counter("sqllock.leases.lost", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that ended before their holders unlocked them."))
	m.Lost, errs[5] = func(ctx context.Context, n int, labels ...string) {
		lost.Add(ctx, int64(n), with(labels, "reason", "lock"))
	}, err
	_, errs[6] = meter.Float64ObservableGauge("sqllock.renewal.left", metric.WithUnit("1"),
		metric.WithDescription("How much of its time-to-live the shortest lease had left at the last renewal."),
		metric.WithFloat64Callback(func(_ context.Context, to metric.Float64Observer) error {
			to.Observe(m.Left.Ratio())
			return nil
		}))
	errs[7] = observeElections(meter, &m.Elections)
	errs[10] = observeOldest(meter, &m.Waits, "sqllock.oldest.wait", "How long the longest-waiting caller of this process has waited.", o.Lock != nil)
	errs[11] = observeOldest(meter, &m.Holds, "sqllock.oldest.hold", "How long this process has held the lock that it has had longest.", o.Lock != nil)
	errs[9] = observeJobs(meter, &m.Jobs)
	if o.Rows != nil {
		errs[8] = observeRows(meter, o.Rows)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if o.Lock == nil {
		m.Begin(context.Background()) // no caller's
	}
	return m, nil
}

// with returns attributes. The last name is that of a label that may be missing.
func with(labels []string, names ...string) metric.MeasurementOption {
	attrs := make([]attribute.KeyValue, len(labels))
	for i, value := range labels {
		attrs[i] = attribute.String(names[i], value)
	}
	return metric.WithAttributes(attrs...)
}
