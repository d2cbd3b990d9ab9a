package sqllockotel

import (
	"context"
	"errors"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sqllock/sqllock/monitor/internal/measure"
	"github.com/sqllock/sqllock/observe"
)

// metrics are the instruments.
type metrics struct {
	lock func(key string) string

	acquired, held, renewed metric.Float64Histogram
	leases, waiters         metric.Int64UpDownCounter
	lost                    metric.Int64Counter
	left                    measure.LeastLeft
	elections               measure.Elections
	begun                   sync.Map // the names that begin was called for
}

func newMetrics(meter metric.Meter, o Options) (*metrics, error) {
	m := &metrics{lock: o.Lock}
	var errs [9]error
	seconds := func(name, text string, bounds []float64) (h metric.Float64Histogram, err error) {
		return meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(bounds...))
	}
	m.acquired, errs[0] = seconds("sqllock.acquire.duration", "How long callers that asked for a lock waited for the answer.", measure.Buckets)
	m.held, errs[1] = seconds("sqllock.hold.duration", "How long locks were held.", measure.HoldBuckets)
	m.renewed, errs[2] = seconds("sqllock.renewal.duration", "How long automatic renewals of all leases took.", measure.Buckets)
	m.leases, errs[3] = meter.Int64UpDownCounter("sqllock.leases.held", metric.WithUnit("{lease}"),
		metric.WithDescription("Locks that this process holds."))
	m.waiters, errs[4] = meter.Int64UpDownCounter("sqllock.waiters", metric.WithUnit("{caller}"),
		metric.WithDescription("Callers of this process that wait for a lock."))
	m.lost, errs[5] = meter.Int64Counter("sqllock.leases.lost", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that ended before their holders unlocked them."))
	_, errs[6] = meter.Float64ObservableGauge("sqllock.renewal.left", metric.WithUnit("1"), metric.WithFloat64Callback(m.observeLeft),
		metric.WithDescription("How much of its time-to-live the shortest lease had left at the last renewal."))
	errs[7] = observeElections(meter, &m.elections)
	if o.Rows != nil {
		errs[8] = observeRows(meter, o.Rows)
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	if o.Lock == nil {
		m.begin(context.Background()) // no caller's
	}
	return m, nil
}

// begin makes the series whose attributes are known, with the name of a lock if there are names, so
// that an increase from 0 is seen.
func (m *metrics) begin(ctx context.Context, name ...attribute.KeyValue) {
	m.leases.Add(ctx, 0, metric.WithAttributes(name...))
	m.waiters.Add(ctx, 0, metric.WithAttributes(name...))
	for _, reason := range measure.Losses {
		m.lost.Add(ctx, 0, metric.WithAttributes(name...), metric.WithAttributes(attribute.String("reason", string(reason))))
	}
}

// of returns the attributes of a metric about the lock of key.
func (m *metrics) of(key string, attrs ...attribute.KeyValue) metric.MeasurementOption {
	if m.lock != nil {
		attrs = append(attrs, attribute.String("lock", measure.Text(m.lock(key))))
	}
	return metric.WithAttributes(attrs...)
}

func (m *metrics) acquire(ctx context.Context, e observe.AcquireStart) func(observe.AcquireEnd) {
	if m.lock != nil {
		name := measure.Text(m.lock(e.Key))
		if _, begun := m.begun.LoadOrStore(name, nil); !begun {
			m.begin(ctx, attribute.String("lock", name))
		}
	}
	waits := e.Wait != 0
	if waits {
		m.waiters.Add(ctx, 1, m.of(e.Key))
	}
	return func(e observe.AcquireEnd) {
		if waits {
			m.waiters.Add(ctx, -1, m.of(e.Key))
		}
		if e.Reentered {
			return
		}
		m.acquired.Record(ctx, e.Took.Seconds(), m.of(e.Key, attribute.String("outcome", string(e.Outcome))))
		if e.Err == nil {
			m.leases.Add(ctx, 1, m.of(e.Key))
			if e.AutoRenew {
				m.left.Begin()
			}
		}
	}
}

func (m *metrics) leaseEnd(ctx context.Context, e observe.LeaseEnd) {
	if e.Reason.Lost() {
		m.lost.Add(ctx, 1, m.of(e.Key, attribute.String("reason", string(e.Reason))))
	}
	m.held.Record(ctx, e.Held.Seconds(), m.of(e.Key, attribute.String("end", measure.End(e.Reason))))
	m.leases.Add(ctx, -1, m.of(e.Key))
	if e.AutoRenew {
		m.left.End()
	}
}

func (m *metrics) renewal(ctx context.Context, e observe.Renewal) {
	m.renewed.Record(ctx, e.Took.Seconds(), metric.WithAttributes(attribute.String("outcome", measure.Renewal(e.Err))))
	m.left.Set(e.Left.Seconds() / e.TTL.Seconds())
}

// observeLeft implements metric.Float64Callback.
func (m *metrics) observeLeft(_ context.Context, to metric.Float64Observer) error {
	to.Observe(m.left.Ratio())
	return nil
}
