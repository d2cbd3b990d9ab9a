package report

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/jedib0t/go-pretty/v6/table"
	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/sqllock/sqllock/dev/bench/internal/contender"
	"github.com/sqllock/sqllock/dev/bench/internal/durable"
	"github.com/sqllock/sqllock/dev/bench/internal/record"
)

// contests has a table for each contest, with a row for each kind of callers, and the plot of one.
func contests(f *record.File, pictures, beside string) (string, error) {
	var text strings.Builder
	for _, load := range contestsOf(f) {
		fmt.Fprintf(&text, "\n### %s\n\n%s\n", load, contestTable(f.Under(load, "")))
		if load != contender.OneLock {
			continue
		}
		if err := plotWaits(f, picture(pictures, "waits")); err != nil {
			return "", err
		}
		fmt.Fprintf(&text, "\n![part of the calls that wait for longer](%s/bench-waits.svg)\n", beside)
	}
	if text.Len() == 0 {
		return notMeasured, nil
	}
	return text.String(), nil
}

func contestsOf(f *record.File) []string {
	var loads []string
	for _, s := range f.Series {
		if len(kindsOf(s)) > 0 && !slices.Contains(loads, s.Load) {
			loads = append(loads, s.Load)
		}
	}
	return loads
}

// kindsOf returns the kinds of callers of a contest.
func kindsOf(s record.Series) []string {
	kinds := make(map[string]bool)
	for _, round := range s.Rounds {
		for name := range round.Values {
			if kind, _, found := strings.Cut(name, "/longest_ms"); found {
				kinds[kind] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

func contestTable(series []record.Series) string {
	t := table.NewWriter()
	t.AppendHeader(table.Row{"", "on", "callers", "acquisitions/s", "wait: p50, ms", "p99, ms", "longest, ms", "least share", "overtaken"})
	for _, s := range series {
		for _, kind := range kindsOf(s) {
			cell := func(value string, digits int) string {
				return column{value: kind + "/" + value, digits: digits}.cell(s)
			}
			longest := cell("longest_ms", 0)
			if len(s.Values(kind+"/waits_on")) > 0 {
				longest = "≥ " + longest
			}
			t.AppendRow(table.Row{
				s.Contender, titles[s.Database], kind, cell("per_s", 0), cell("p50_ms", 0), cell("p99_ms", 0), longest,
				cell("least_share", 2), cell("overtaken", 0),
			})
		}
	}
	return t.RenderMarkdown()
}

// plotWaits draws which part of the calls for one lock has waited for longer. Those on MariaDB have a table only.
func plotWaits(f *record.File, path string) error {
	p := newPlot(contender.OneLock + ": part of the calls that wait for longer")
	p.X.Label.Text, p.Y.Label.Text = "milliseconds", "part of the calls"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker, p.Y.Tick.Marker = roundTicks{}, roundTicks{}
	var labels labels
	for _, s := range f.Under(contender.OneLock, "") {
		sorted := slices.Sorted(slices.Values(s.Samples()))
		if points := beyond(sorted); len(points) > 0 && s.Database != durable.MariaDB {
			if err := labels.add(p, s.Contender, points); err != nil {
				return err
			}
		}
	}
	return labels.save(p, path)
}

// beyond returns which part of some waits, which are sorted, is at least as long, with as many points as a picture shows.
func beyond(sorted []float64) (points plotter.XYs) {
	const shortest, step = 1.0, 1.01 // milliseconds; of a logarithmic scale
	for i, wait := range sorted {
		at := plotter.XY{X: max(wait/1e3, shortest), Y: float64(len(sorted)-i) / float64(len(sorted))}
		if last := len(points) - 1; last < 0 || at.X > points[last].X*step || at.Y*step < points[last].Y {
			points = append(points, at)
		}
	}
	return points
}
