package main

import (
	"context"
	"fmt"
	"regexp"
	"time"

	"github.com/prometheus/common/promslog"
	"github.com/prometheus/prometheus/promql"
	"github.com/prometheus/prometheus/promql/parser"

	"github.com/sqllock/sqllock/observability/dashboard"
)

// A line is a series that a panel shows.
type line struct {
	name   string
	points []promql.FPoint
}

// A shown panel has what its expressions return.
type shown struct {
	dashboard.Panel
	lines []line
}

// evaluate returns the panels of a dashboard with their lines, as Prometheus computes them of the
// samples.
func evaluate(ctx context.Context, d *dashboard.Dashboard, s *samples) ([]shown, error) {
	engine := promql.NewEngine(promql.EngineOpts{
		Logger: promslog.NewNopLogger(), MaxSamples: 10e6, Timeout: time.Minute, Parser: parser.NewParser(parser.Options{}),
		LookbackDelta: 2 * s.interval, // a series that has ended is gone, as with Prometheus's marks for that
	})
	var all []shown
	for _, panel := range d.Panels {
		one := shown{Panel: panel}
		for _, target := range panel.Targets {
			expr, err := d.Fill(target.Expr, 4*s.interval, s.end.Sub(s.start)) // as Grafana chooses $__rate_interval
			if err != nil {
				return nil, err
			}
			query, err := engine.NewRangeQuery(ctx, s, nil, expr, s.start, s.end, s.interval)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", expr, err)
			}
			lines, err := query.Exec(ctx).Matrix()
			if err != nil {
				return nil, fmt.Errorf("%s: %w", expr, err)
			}
			for _, found := range lines {
				one.lines = append(one.lines, line{legend(target.LegendFormat, found), found.Floats})
			}
		}
		all = append(all, one)
	}
	return all, nil
}

var labelOf = regexp.MustCompile(`{{\s*(\w+)\s*}}`)

// legend fills in the labels of a series.
func legend(format string, of promql.Series) string {
	return labelOf.ReplaceAllStringFunc(format, func(name string) string {
		return of.Metric.Get(labelOf.FindStringSubmatch(name)[1])
	})
}
