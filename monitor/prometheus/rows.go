package sqllockprom

import (
	"context"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/sqllock/sqllock"
)

const (
	rowsEvery   = 10 * time.Second
	rowsTimeout = 5 * time.Second
	// rowsRest is how many times as long as the last count the pause after it is at least: a large table
	// is counted less often.
	rowsRest = 10
)

// rows counts the rows of a repository. While that fails there is no number of them, and failed is 1.
type rows struct {
	repository   *sqllock.Repository
	desc, failed *prometheus.Desc

	mu            sync.Mutex
	next          time.Time // when they are to be counted again
	held, expired int64
	err           error
}

func newRows(repository *sqllock.Repository) *rows {
	return &rows{
		repository: repository,
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
	held, expired, err := r.count()
	failed := 1.0
	if err == nil {
		failed = 0
		to <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, float64(held), "held")
		to <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, float64(expired), "expired")
	}
	to <- prometheus.MustNewConstMetric(r.failed, prometheus.GaugeValue, failed)
}

// count counts the rows, unless that was done a short time ago.
func (r *rows) count() (held, expired int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if began := time.Now(); !began.Before(r.next) {
		ctx, cancel := context.WithTimeout(context.Background(), rowsTimeout)
		defer cancel()
		r.held, r.expired, r.err = r.repository.Count(ctx)
		r.next = began.Add(max(rowsEvery, rowsRest*time.Since(began)))
	}
	return r.held, r.expired, r.err
}
