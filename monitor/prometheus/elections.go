package sqllockprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sqllock/sqllock/monitor/internal/measure"
)

// elections collects those in which electors of this process take part.
type elections struct {
	*measure.Elections
	leader, terms *prometheus.Desc
}

func newElections(of *measure.Elections) *elections {
	labels := []string{"election"}
	return &elections{
		Elections: of,

		leader: prometheus.NewDesc("sqllock_leader", "Whether this process leads, 1 or 0, while it takes part in the election.", labels, nil),
		terms:  prometheus.NewDesc("sqllock_leader_terms_total", "Terms in which this process has led.", labels, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *elections) Describe(to chan<- *prometheus.Desc) {
	to <- c.leader
	to <- c.terms
}

// Collect implements prometheus.Collector.
func (c *elections) Collect(to chan<- prometheus.Metric) {
	c.Each(func(role string, of measure.Electors) {
		to <- prometheus.MustNewConstMetric(c.terms, prometheus.CounterValue, float64(of.Terms), role)
		if of.Running > 0 {
			to <- prometheus.MustNewConstMetric(c.leader, prometheus.GaugeValue, float64(of.Leading), role)
		}
	})
}
