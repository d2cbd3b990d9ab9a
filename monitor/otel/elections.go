package sqllockotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sqllock/sqllock/monitor/internal/measure"
)

// observeElections makes the instruments for elections.
func observeElections(meter metric.Meter, elections *measure.Elections) error {
	each := func(do func(to metric.Int64Observer, of measure.Electors, role metric.MeasurementOption)) metric.Int64Callback {
		return func(_ context.Context, to metric.Int64Observer) error {
			elections.Each(func(role string, of measure.Electors) {
				do(to, of, metric.WithAttributes(attribute.String("election", role)))
			})
			return nil
		}
	}
	_, failed := meter.Int64ObservableCounter("sqllock.leader.terms", metric.WithUnit("{term}"),
		metric.WithDescription("Terms in which this process has led."),
		metric.WithInt64Callback(each(func(to metric.Int64Observer, of measure.Electors, role metric.MeasurementOption) {
			to.Observe(of.Terms, role)
		})))
	_, err := meter.Int64ObservableGauge("sqllock.leader", metric.WithUnit("{elector}"),
		metric.WithDescription("Whether this process leads, 1 or 0, while it takes part in the election."),
		metric.WithInt64Callback(each(func(to metric.Int64Observer, of measure.Electors, role metric.MeasurementOption) {
			if of.Running > 0 {
				to.Observe(int64(of.Leading), role)
			}
		})))
	return errors.Join(failed, err)
}
