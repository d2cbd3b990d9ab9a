package report

import (
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"

	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/dev/bench/internal/stats"
)

// workers are those of the loads "pairs".
var workers = []struct {
	load  string
	count float64
}{{"pairs 1", 1}, {"pairs 16", 16}, {"pairs 64", 64}, {"pairs 256", 256}}

// plotPairs draws the rates of a family's contenders over the workers.
func plotPairs(f *record.File, some family, path string) error {
	p := newPlot("acquire and release, distinct keys: " + some.title)
	p.X.Label.Text, p.Y.Label.Text = "workers", "pairs per second"
	p.X.Scale, p.Y.Scale = plot.LogScale{}, plot.LogScale{}
	p.X.Tick.Marker = plot.ConstantTicks{{Value: 1, Label: "1"}, {Value: 16, Label: "16"}, {Value: 64, Label: "64"}, {Value: 256, Label: "256"}}
	p.Y.Tick.Marker = roundTicks{}
	var labels labels
	for _, contender := range contendersUnder(f, some.kinds) {
		if isTwin(contender) {
			continue
		}
		var points plotter.XYs
		for _, w := range workers {
			if s, ok := f.Find(w.load, contender); ok && len(s.Values("pairs_per_s")) > 0 {
				points = append(points, plotter.XY{X: w.count, Y: stats.Summarize(s.Values("pairs_per_s")).Median})
			}
		}
		if len(points) < len(workers) {
			continue // a variant that differs little
		}
		if err := labels.add(p, contender, points); err != nil {
			return err
		}
	}
	return labels.save(p, path)
}

// plotHandOff draws which part of the hand-offs took at most how long.
func plotHandOff(f *record.File, path string) error {
	p := newPlot("hand-off between two processes")
	p.X.Label.Text, p.Y.Label.Text = "milliseconds at most", "part of the hand-offs"
	p.X.Scale = plot.LogScale{}
	p.X.Tick.Marker = roundTicks{}
	p.Y.Min, p.Y.Max = 0, 1
	var labels labels
	for _, s := range f.Under("hand-off", "") {
		if isTwin(s.Contender) {
			continue
		}
		sorted := slices.Sorted(slices.Values(s.Samples()))
		var points plotter.XYs
		for i, sample := range sorted {
			points = append(points, plotter.XY{X: max(sample/1e3, 1e-2), Y: float64(i+1) / float64(len(sorted))})
		}
		if len(points) == 0 {
			continue
		}
		if err := labels.add(p, s.Contender, points); err != nil {
			return err
		}
	}
	return labels.save(p, path)
}

// isTwin reports whether a contender is with lib/pq what another one is with pgx: one line is enough for both.
func isTwin(contender string) bool { return strings.HasSuffix(contender, "/pq") }

// roundTicks are 1, 2 and 5 times the powers of ten.
type roundTicks struct{}

// Ticks implements [plot.Ticker].
func (roundTicks) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for power := math.Pow10(int(math.Floor(math.Log10(low)))); power <= high; power *= 10 {
		for _, times := range []float64{1, 2, 5} {
			if value := times * power; low <= value && value <= high {
				ticks = append(ticks, plot.Tick{Value: value, Label: strconv.FormatFloat(value, 'g', 6, 64)})
			}
		}
	}
	return ticks
}

// contendersUnder returns those of some databases under the loads "pairs".
func contendersUnder(f *record.File, kinds []string) []string {
	loads := make([]string, len(workers))
	for i, w := range workers {
		loads[i] = w.load
	}
	return under(f, loads, func(s record.Series) bool { return slices.Contains(kinds, s.Database) })
}

func picture(pictures, name string) string { return filepath.Join(pictures, "bench-"+name+".svg") }
