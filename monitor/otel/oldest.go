package sqllockotel

import (
	"context"

	"go.opentelemetry.io/otel/metric"

	"github.com/sqllock/sqllock/monitor/internal/measure"
)

// observeOldest makes an instrument for how long the oldest wait or hold has lasted.
func observeOldest(meter metric.Meter, of *measure.Oldest, name, text string, named bool) error {
	_, err := meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(text),
		metric.WithFloat64Callback(func(_ context.Context, to metric.Float64Observer) error {
			of.Each(func(seconds float64, lock string) {
				if named {
					to.Observe(seconds, with([]string{lock}, "lock"))
				} else {
					to.Observe(seconds)
				}
			})
			return nil
		}))
	return err
}
