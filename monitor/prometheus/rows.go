package sqllockprom

import (
	"context"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/monitor/internal/measure"
)

// rows collects how many rows a repository has. While they cannot be counted there is no number of them, and
// failed is 1.
type rows struct {
	counted      *measure.Rows
	desc, failed *prometheus.Desc
}

func newRows(repository *sqllock.Repository) *rows {
	return &rows{
		counted: measure.NewRows(repository),
		desc: prometheus.NewDesc(
			"sqllock_rows", "Rows of the lock table, in the region of the repository.", []string{"state"}, nil,
		),
		failed: prometheus.NewDesc(
			"sqllock_rows_failed", "Whether the rows of the lock table could not be counted, 1 or 0.", nil, nil,
		),
	}
}

// Describe implements prometheus.Collector.
func (r *rows) Describe(to chan<- *prometheus.Desc) {
	to <- r.desc
	to <- r.failed
}

// Collect implements prometheus.Collector.
func (r *rows) Collect(to chan<- prometheus.Metric) {
	counts, err := r.counted.Count(context.Background())
	failed := 1.0
	if err == nil {
		failed = 0
		for state, n := range counts {
			to <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, float64(n), state)
		}
	}
	to <- prometheus.MustNewConstMetric(r.failed, prometheus.GaugeValue, failed)
}
