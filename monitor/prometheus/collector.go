// Package sqllockprom measures the locks of a sqllock registry for Prometheus.
//
//	metrics := sqllockprom.New(nil)
//	prometheus.MustRegister(metrics)
//	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
//		Observers: []*observe.Observer{metrics.Observer()},
//	})
//
// docs/observability.md of sqllock has all metrics with their meanings, and monitor/dashboard
// a dashboard and alert rules for them. Package sqllockotel has the same metrics for OpenTelemetry.
package sqllockprom

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/monitor/internal/measure"
	"github.com/sqllock/sqllock/observe"
)

// Options are the settings of a [Collector]. A zero field means its default.
type Options struct {
	// Lock, if set, maps keys to the label "lock" of the metrics about locks. It must return few
	// different names: each makes about forty time series,
	// and some twenty more for each further outcome of a call and end of a lease. By default there is no such label.
	// For a permit or a reader, key is that of the semaphore or the read-write lock.
	Lock func(key string) string

	// Rows, if set, is a repository whose rows are counted for sqllock_rows, at most every ten
	// seconds, by [sqllock.Repository.Count]. It has five seconds; after a count that takes long there is a
	// pause of ten times that. If it fails, sqllock_rows_failed is 1. Set it in one process, not in all that
	// share the table. By default the table is not read.
	Rows *sqllock.Repository
}

// A Collector measures what its [Collector.Observer] is told. One may serve several registries. All
// methods are safe for concurrent use.
type Collector struct {
	metrics measure.Metrics
	all     []prometheus.Collector
}

// New returns a collector, which is to be registered. opts may be nil.
func New(opts *Options) *Collector {
	var o Options
	if opts != nil {
		o = *opts
	}
	var lock []string
	if o.Lock != nil {
		lock = []string{"lock"}
	}
	with := func(labels ...string) []string { return append(labels, lock...) }
	c := &Collector{metrics: measure.Metrics{Lock: o.Lock}}
	seconds := func(name, help string, buckets []float64, labels ...string) func(context.Context, float64, ...string) {
		h := prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
		c.all = append(c.all, h)
		return func(_ context.Context, took float64, labels ...string) { h.WithLabelValues(labels...).Observe(took) }
	}
	number := func(name, help string) func(context.Context, int, ...string) {
		g := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: name, Help: help}, lock)
		c.all = append(c.all, g)
		return func(_ context.Context, n int, labels ...string) { g.WithLabelValues(labels...).Add(float64(n)) }
	}
	lost := prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "sqllock_leases_lost_total",
		Help: "Leases that ended before their holders unlocked them.",
	}, with("reason"))
	c.metrics.Instruments = measure.Instruments{
		Acquired: seconds("sqllock_acquire_duration_seconds", "How long callers that asked for a lock waited for the answer.", measure.Buckets, with("outcome")...),
		Held:     seconds("sqllock_hold_duration_seconds", "How long locks were held.", measure.HoldBuckets, with("end")...),
		Renewed:  seconds("sqllock_renewal_duration_seconds", "How long automatic renewals of all leases took.", measure.Buckets, "outcome"),
		Leases:   number("sqllock_leases_held", "Locks that this process holds."),
		Waiters:  number("sqllock_waiters", "Callers of this process that wait for a lock."),
		Lost:     func(_ context.Context, n int, labels ...string) { lost.WithLabelValues(labels...).Add(float64(n)) },
	}
	left := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sqllock_renewal_left_ratio",
		Help: "How much of its time-to-live the shortest lease had left at the last renewal.",
	}, c.metrics.Left.Ratio)
	c.all = append(c.all, lost, left,
		newOldest(&c.metrics.Waits, "sqllock_oldest_wait_seconds", "How long the longest-waiting caller of this process has waited.", lock),
		newOldest(&c.metrics.Holds, "sqllock_oldest_hold_seconds", "How long this process has held the lock that it has had longest.", lock),
		newElections(&c.metrics.Elections), newJobs(&c.metrics.Jobs))
	if o.Rows != nil {
		c.all = append(c.all, newRows(o.Rows))
	}
	if o.Lock == nil {
		c.metrics.Begin(context.Background())
	}
	return c
}

// Describe implements prometheus.Collector.
func (c *Collector) Describe(to chan<- *prometheus.Desc) {
	for _, one := range c.all {
		one.Describe(to)
	}
}

// Collect implements prometheus.Collector.
func (c *Collector) Collect(to chan<- prometheus.Metric) {
	for _, one := range c.all {
		one.Collect(to)
	}
}

// Observer returns what is to be set in [sqllock.RegistryOptions], or in [sqllock.RepositoryOptions].
func (c *Collector) Observer() *observe.Observer {
	return &observe.Observer{
		Acquire: func(ctx context.Context, e observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
			return ctx, c.metrics.Acquire(ctx, e)
		},
		LeaseEnd: c.metrics.LeaseEnd, Renewal: c.metrics.Renewal, Election: c.metrics.Elections.Changed,
		JobRun: c.metrics.Jobs.Called,
	}
}
