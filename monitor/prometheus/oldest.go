package sqllockprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sqllock/sqllock/monitor/internal/measure"
)

// oldest collects for how long the oldest wait or hold has lasted.
type oldest struct {
	*measure.Oldest
	desc   *prometheus.Desc
	labels []string
}

func newOldest(of *measure.Oldest, name, help string, labels []string) *oldest {
	return &oldest{Oldest: of, desc: prometheus.NewDesc(name, help, labels, nil), labels: labels}
}

// Describe implements prometheus.Collector.
func (c *oldest) Describe(to chan<- *prometheus.Desc) { to <- c.desc }

// Collect implements prometheus.Collector.
func (c *oldest) Collect(to chan<- prometheus.Metric) {
	c.Each(func(seconds float64, name string) {
		to <- prometheus.MustNewConstMetric(c.desc, prometheus.GaugeValue, seconds, []string{name}[:len(c.labels)]...)
	})
}
