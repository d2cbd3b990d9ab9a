package sqllockotel

import (
	"context"
	"errors"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

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
	repository *sqllock.Repository

	mu            sync.Mutex
	next          time.Time // when they are to be counted again
	held, expired int64
	err           error
}

// observeRows makes the instruments for the rows of a repository.
func observeRows(meter metric.Meter, repository *sqllock.Repository) error {
	r := &rows{repository: repository}
	_, err := meter.Int64ObservableGauge("sqllock.rows", metric.WithUnit("{row}"), metric.WithInt64Callback(r.observe),
		metric.WithDescription("Rows of the lock table, in the region of the repository."))
	_, failed := meter.Int64ObservableGauge("sqllock.rows.failed", metric.WithUnit("{count}"), metric.WithInt64Callback(r.observeFailed),
		metric.WithDescription("Whether the rows of the lock table could not be counted, 1 or 0."))
	return errors.Join(err, failed)
}

// observe implements metric.Int64Callback.
func (r *rows) observe(ctx context.Context, to metric.Int64Observer) error {
	held, expired, err := r.count(ctx)
	if err == nil {
		to.Observe(held, metric.WithAttributes(attribute.String("state", "held")))
		to.Observe(expired, metric.WithAttributes(attribute.String("state", "expired")))
	}
	return err
}

// observeFailed implements metric.Int64Callback.
func (r *rows) observeFailed(ctx context.Context, to metric.Int64Observer) error {
	failed := int64(0)
	if _, _, err := r.count(ctx); err != nil {
		failed = 1
	}
	to.Observe(failed)
	return nil
}

// count counts the rows, unless that was done a short time ago.
func (r *rows) count(ctx context.Context) (held, expired int64, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if began := time.Now(); !began.Before(r.next) {
		limited, cancel := context.WithTimeout(ctx, rowsTimeout)
		defer cancel()
		r.held, r.expired, r.err = r.repository.Count(limited)
		r.next = began.Add(max(rowsEvery, rowsRest*time.Since(began)))
	}
	return r.held, r.expired, r.err
}
