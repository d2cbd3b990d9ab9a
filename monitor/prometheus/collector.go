// Package sqllockprom measures the locks of a sqllock registry for Prometheus.
//
//	metrics := sqllockprom.New(nil)
//	prometheus.MustRegister(metrics)
//	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{
//		Observers: []*observe.Observer{metrics.Observer()},
//	})
//
// docs/observability.md of sqllock has all metrics with their meanings, and directory observability
// a dashboard and alert rules for them. Package sqllockotel has the same metrics for OpenTelemetry.
package sqllockprom

import (
	"context"
	"sync"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/monitor/internal/measure"
	"github.com/sqllock/sqllock/observe"
)

// Options are the settings of a [Collector]. A zero field means its default.
type Options struct {
	// Lock, if set, maps keys to the label "lock" of the metrics about locks. It must return few
	// different names: each makes about forty time series. By default there is no such label.
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
	lock func(key string) string
	all  []prometheus.Collector

	acquire, hold, renewal *prometheus.HistogramVec
	held, waiters          *prometheus.GaugeVec
	lost                   *prometheus.CounterVec
	left                   measure.LeastLeft
	elections              *elections
	begun                  sync.Map // the names that begin was called for
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
	c := &Collector{
		lock: o.Lock,
		acquire: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sqllock_acquire_duration_seconds", Buckets: measure.Buckets,
			Help: "How long callers that asked for a lock waited for the answer.",
		}, with("outcome")),
		hold: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sqllock_hold_duration_seconds", Buckets: measure.HoldBuckets,
			Help: "How long locks were held.",
		}, with("end")),
		renewal: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name: "sqllock_renewal_duration_seconds", Buckets: measure.Buckets,
			Help: "How long automatic renewals of all leases took.",
		}, []string{"outcome"}),
		held: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sqllock_leases_held",
			Help: "Locks that this process holds.",
		}, with()),
		waiters: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "sqllock_waiters",
			Help: "Callers of this process that wait for a lock.",
		}, with()),
		lost: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "sqllock_leases_lost_total",
			Help: "Leases that ended before their holders unlocked them.",
		}, with("reason")),
		elections: newElections(),
	}
	left := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "sqllock_renewal_left_ratio",
		Help: "How much of its time-to-live the shortest lease had left at the last renewal.",
	}, c.left.Ratio)
	c.all = []prometheus.Collector{c.acquire, c.hold, c.renewal, c.held, c.waiters, c.lost, left, c.elections}
	if o.Rows != nil {
		c.all = append(c.all, newRows(o.Rows))
	}
	if o.Lock == nil {
		c.begin()
	}
	return c
}

// begin makes the series whose labels are known, with the name of a lock if there are names, so that
// an increase from 0 is seen.
func (c *Collector) begin(name ...string) {
	c.held.WithLabelValues(name...)
	c.waiters.WithLabelValues(name...)
	for _, reason := range measure.Losses {
		c.lost.WithLabelValues(append([]string{string(reason)}, name...)...)
	}
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
	return &observe.Observer{Acquire: c.asked, LeaseEnd: c.ended, Renewal: c.renewed, Election: c.elections.Changed}
}

// labels returns the values of a metric about the lock of key.
func (c *Collector) labels(key string, values ...string) []string {
	if c.lock != nil {
		values = append(values, measure.Text(c.lock(key)))
	}
	return values
}

func (c *Collector) asked(ctx context.Context, e observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
	if c.lock != nil {
		name := measure.Text(c.lock(e.Key))
		if _, begun := c.begun.LoadOrStore(name, nil); !begun {
			c.begin(name)
		}
	}
	waits := e.Wait != 0
	if waits {
		c.waiters.WithLabelValues(c.labels(e.Key)...).Inc()
	}
	return ctx, func(e observe.AcquireEnd) {
		if waits {
			c.waiters.WithLabelValues(c.labels(e.Key)...).Dec()
		}
		if e.Reentered {
			return
		}
		c.acquire.WithLabelValues(c.labels(e.Key, string(e.Outcome))...).Observe(e.Took.Seconds())
		if e.Err == nil {
			c.held.WithLabelValues(c.labels(e.Key)...).Inc()
			if e.AutoRenew {
				c.left.Begin()
			}
		}
	}
}

func (c *Collector) ended(_ context.Context, e observe.LeaseEnd) {
	if e.Reason.Lost() {
		c.lost.WithLabelValues(c.labels(e.Key, string(e.Reason))...).Inc()
	}
	c.hold.WithLabelValues(c.labels(e.Key, measure.End(e.Reason))...).Observe(e.Held.Seconds())
	c.held.WithLabelValues(c.labels(e.Key)...).Dec()
	if e.AutoRenew {
		c.left.End()
	}
}

func (c *Collector) renewed(_ context.Context, e observe.Renewal) {
	c.renewal.WithLabelValues(measure.Renewal(e.Err)).Observe(e.Took.Seconds())
	c.left.Set(e.Left.Seconds() / e.TTL.Seconds())
}
