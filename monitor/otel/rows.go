package sqllockotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/monitor/internal/measure"
)

// observeRows makes the instruments for the rows of a repository. While they cannot be counted there is no number
// of them, and failed is 1.
func observeRows(meter metric.Meter, repository *sqllock.Repository) error {
	rows := measure.NewRows(repository)
	count := func(ctx context.Context, to metric.Int64Observer) error {
		counts, err := rows.Count(ctx)
		if err != nil {
			return err
		}
		for state, n := range counts {
			to.Observe(n, metric.WithAttributes(attribute.String("state", state)))
		}
		return nil
	}
	fail := func(ctx context.Context, to metric.Int64Observer) error {
		failed := int64(0)
		if _, err := rows.Count(ctx); err != nil {
			failed = 1
		}
		to.Observe(failed)
		return nil
	}
	_, err := meter.Int64ObservableGauge("sqllock.rows", metric.WithUnit("{row}"), metric.WithInt64Callback(count),
		metric.WithDescription("Rows of the lock table, in the region of the repository."))
	_, failed := meter.Int64ObservableGauge("sqllock.rows.failed", metric.WithUnit("{count}"), metric.WithInt64Callback(fail),
		metric.WithDescription("Whether the rows of the lock table could not be counted, 1 or 0."))
	return errors.Join(err, failed)
}
