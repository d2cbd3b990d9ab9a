package sqllockprom

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/sqllock/sqllock/monitor/internal/measure"
)

// jobs collects the calls of jobs in this process.
type jobs struct {
	*measure.Jobs
	runs, success, took *prometheus.Desc
}

func newJobs(of *measure.Jobs) *jobs {
	return &jobs{
		Jobs: of,

		runs:    prometheus.NewDesc("sqllock_job_runs_total", "Calls of jobs in this process, also those that were skipped.", []string{"name", "outcome"}, nil),
		success: prometheus.NewDesc("sqllock_job_last_success_timestamp_seconds", "When a run of the job in this process last ended without an error.", []string{"name"}, nil),
		took:    prometheus.NewDesc("sqllock_job_last_duration_seconds", "How long the last run of the job in this process took.", []string{"name"}, nil),
	}
}

// Describe implements prometheus.Collector.
func (c *jobs) Describe(to chan<- *prometheus.Desc) {
	to <- c.runs
	to <- c.success
	to <- c.took
}

// Collect implements prometheus.Collector.
func (c *jobs) Collect(to chan<- prometheus.Metric) {
	c.Each(func(name string, of measure.Runs) {
		for outcome, n := range of.Count {
			to <- prometheus.MustNewConstMetric(c.runs, prometheus.CounterValue, float64(n), name, string(outcome))
		}
		if at := of.SuccessSeconds(); at > 0 {
			to <- prometheus.MustNewConstMetric(c.success, prometheus.GaugeValue, at, name)
		}
		if of.Took > 0 {
			to <- prometheus.MustNewConstMetric(c.took, prometheus.GaugeValue, of.Took.Seconds(), name)
		}
	})
}
