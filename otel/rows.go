package sqllockotel

import (
	"context"
	"sync"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sqllock/sqllock"
)

const (
	rowsEvery   = 10 * time.Second
	rowsTimeout = 5 * time.Second
)

// rows counts the rows of a repository. While the database does not answer there are no series.
type rows struct {
	repository *sqllock.Repository

	mu            sync.Mutex
	read          time.Time
	held, expired int64
	err           error
}

// observe implements metric.Int64Callback.
func (r *rows) observe(ctx context.Context, to metric.Int64Observer) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.read) >= rowsEvery {
		r.count(ctx)
	}
	if r.err == nil {
		to.Observe(r.held, metric.WithAttributes(attribute.String("state", "held")))
		to.Observe(r.expired, metric.WithAttributes(attribute.String("state", "expired")))
	}
	return r.err
}

func (r *rows) count(ctx context.Context) {
	limited, cancel := context.WithTimeout(ctx, rowsTimeout)
	defer cancel()
	found, err := r.repository.List(limited)
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
