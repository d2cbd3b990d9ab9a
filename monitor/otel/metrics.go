package sqllockotel

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sqllock/sqllock/observe"
)

var (
	buckets     = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60}
	holdBuckets = append(slices.Clone(buckets), 300, 3600)
)

// metrics are the instruments.
type metrics struct {
	lock func(key string) string

	acquired, held, renewed metric.Float64Histogram
	leases, waiters         metric.Int64UpDownCounter
	lost                    metric.Int64Counter
	left                    leastLeft
	elections               *elections
	begun                   sync.Map // the names that begin was called for
}

func newMetrics(meter metric.Meter, o Options) (*metrics, error) {
	m := &metrics{lock: o.Lock, left: leastLeft{ratio: 1}}
	var errs [9]error
	seconds := func(name, text string, bounds []float64) (h metric.Float64Histogram, err error) {
		return meter.Float64Histogram(name, metric.WithUnit("s"), metric.WithDescription(text), metric.WithExplicitBucketBoundaries(bounds...))
	}
	m.acquired, errs[0] = seconds("sqllock.acquire.duration", "How long callers that asked for a lock waited for the answer.", buckets)
	m.held, errs[1] = seconds("sqllock.hold.duration", "How long locks were held.", holdBuckets)
	m.renewed, errs[2] = seconds("sqllock.renewal.duration", "How long automatic renewals of all leases took.", buckets)
	m.leases, errs[3] = meter.Int64UpDownCounter("sqllock.leases.held", metric.WithUnit("{lease}"),
		metric.WithDescription("Locks that this process holds."))
	m.waiters, errs[4] = meter.Int64UpDownCounter("sqllock.waiters", metric.WithUnit("{caller}"),
		metric.WithDescription("Callers of this process that wait for a lock."))
	m.lost, errs[5] = meter.Int64Counter("sqllock.leases.lost", metric.WithUnit("{lease}"),
		metric.WithDescription("Leases that ended before their holders unlocked them."))
	_, errs[6] = meter.Float64ObservableGauge("sqllock.renewal.left", metric.WithUnit("1"), metric.WithFloat64Callback(m.left.observe),
		metric.WithDescription("How much of its time-to-live the shortest lease had left at the last renewal."))
	m.elections, errs[7] = newElections(meter)
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
	for _, reason := range []observe.EndReason{observe.EndExpired, observe.EndTaken} {
		m.lost.Add(ctx, 0, metric.WithAttributes(name...), metric.WithAttributes(attribute.String("reason", string(reason))))
	}
}

// of returns the attributes of a metric about the lock of key.
func (m *metrics) of(key string, attrs ...attribute.KeyValue) metric.MeasurementOption {
	if m.lock != nil {
		attrs = append(attrs, attribute.String("lock", text(m.lock(key))))
	}
	return metric.WithAttributes(attrs...)
}

// text returns the value of an attribute, which has to be UTF-8: a function may cut a key inside of a
// character, and exporters refuse it, some with all that they were to send.
func text(value string) string { return strings.ToValidUTF8(value, "\uFFFD") }

func (m *metrics) acquire(ctx context.Context, e observe.AcquireStart) func(observe.AcquireEnd) {
	if m.lock != nil {
		name := text(m.lock(e.Key))
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
				m.left.begin()
			}
		}
	}
}

func (m *metrics) leaseEnd(ctx context.Context, e observe.LeaseEnd) {
	end := string(e.Reason)
	if e.Reason.Lost() {
		end = "lost"
		m.lost.Add(ctx, 1, m.of(e.Key, attribute.String("reason", string(e.Reason))))
	}
	m.held.Record(ctx, e.Held.Seconds(), m.of(e.Key, attribute.String("end", end)))
	m.leases.Add(ctx, -1, m.of(e.Key))
	if e.AutoRenew {
		m.left.end()
	}
}

func (m *metrics) renewal(ctx context.Context, e observe.Renewal) {
	outcome := "renewed"
	switch {
	case e.Err == nil:
	case isPinned(e.Err):
		outcome = "pinned"
	default:
		outcome = "error"
	}
	m.renewed.Record(ctx, e.Took.Seconds(), metric.WithAttributes(attribute.String("outcome", outcome)))
	m.left.set(e.Left.Seconds() / e.TTL.Seconds())
}

// leastLeft is how much of the shortest lease was left at the last renewal. It is 1 while there is
// no lease to renew: a value from before would stand for ever.
type leastLeft struct {
	mu     sync.Mutex
	leases int
	ratio  float64
}

func (l *leastLeft) begin() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.leases++
}

func (l *leastLeft) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases--; l.leases == 0 {
		l.ratio = 1
	}
}

func (l *leastLeft) set(ratio float64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.leases > 0 {
		l.ratio = ratio
	}
}

func (l *leastLeft) observe(_ context.Context, to metric.Float64Observer) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	to.Observe(l.ratio)
	return nil
}
