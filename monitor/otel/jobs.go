package sqllockotel

import (
	"context"
	"errors"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/metric"

	"github.com/sqllock/sqllock/monitor/internal/measure"
)

// observeJobs makes the instruments for jobs.
func observeJobs(meter metric.Meter, jobs *measure.Jobs) error {
	_, err := meter.Int64ObservableCounter("sqllock.job.runs", metric.WithUnit("{run}"),
		metric.WithDescription("Calls of jobs in this process, also those that were skipped."),
		metric.WithInt64Callback(func(_ context.Context, to metric.Int64Observer) error {
			jobs.Each(func(name string, of measure.Runs) {
				for outcome, n := range of.Count {
					to.Observe(n, with([]string{name, string(outcome)}, "name", "outcome"))
				}
			})
			return nil
		}))
	seconds := func(name, text string, value func(measure.Runs) float64) error {
		_, err := meter.Float64ObservableGauge(name, metric.WithUnit("s"), metric.WithDescription(text),
			metric.WithFloat64Callback(func(_ context.Context, to metric.Float64Observer) error {
				jobs.Each(func(job string, of measure.Runs) {
					if v := value(of); v > 0 {
						to.Observe(v, metric.WithAttributes(attribute.String("name", job)))
					}
				})
				return nil
			}))
		return err
	}
	return errors.Join(err,
		seconds("sqllock.job.last_success.timestamp", "When a run of the job in this process last ended without an error.", measure.Runs.SuccessSeconds),
		seconds("sqllock.job.last.duration", "How long the last run of the job in this process took.", func(of measure.Runs) float64 { return of.Took.Seconds() }))
}
