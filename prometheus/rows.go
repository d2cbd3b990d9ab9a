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
)

// rows counts the rows of a repository. While the database does not answer there are no series.
type rows struct {
	repository *sqllock.Repository
	desc       *prometheus.Desc

	mu            sync.Mutex
	read          time.Time
	held, expired float64
	err           error
}

func newRows(repository *sqllock.Repository) *rows {
	return &rows{repository: repository, desc: prometheus.NewDesc(
		"sqllock_rows", "Rows of the lock table, in the region of the repository.", []string{"state"}, nil,
	)}
}

// Describe implements prometheus.Collector.
func (r *rows) Describe(to chan<- *prometheus.Desc) { to <- r.desc }

// Collect implements prometheus.Collector.
func (r *rows) Collect(to chan<- prometheus.Metric) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) >= rowsEvery {
		r.count()
	}
	if r.err == nil {
		to <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, r.held, "held")
		to <- prometheus.MustNewConstMetric(r.desc, prometheus.GaugeValue, r.expired, "expired")
	}
}

func (r *rows) count() {
	ctx, cancel := context.WithTimeout(context.Background(), rowsTimeout)
	defer cancel()
	found, err := r.repository.List(ctx)
	r.read, r.err, r.held, r.expired = time.Now(), err, 0, 0
	for _, row := range found {
		switch {
		case row.Region != r.repository.Region():
		case row.Expired():
			r.expired++
		default:
			r.held++
		}
	}
}
