package report

import (
	"cmp"
	"maps"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"

	"github.com/sqllock/sqllock/dev/bench/internal/record"
	"github.com/sqllock/sqllock/dev/bench/internal/stats"
)

// workers are the loads "pairs", with more and more of them.
var workers = []string{"pairs 1", "pairs 16", "pairs 64", "pairs 256"}

// plotPairs draws the rates of all contenders that were measured with each number of workers.
func plotPairs(f *record.File, path string) error {
	c := comparison{
		title: "acquire and release, distinct keys", unit: "pairs per second",
		marks: []string{"1 worker", "16 workers", "64 workers", "256 workers"},
	}
	for _, contender := range contendersUnder(f, slices.Collect(maps.Keys(titles))) {
		var rates []float64
		for _, w := range workers {
			if s, ok := f.Find(w, contender); ok && len(s.Values("pairs_per_s")) > 0 {
				rates = append(rates, stats.Summarize(s.Values("pairs_per_s")).Median)
			}
		}
		if len(rates) == len(workers) && !isTwin(contender) {
			c.rows = append(c.rows, row{contender, rates})
		}
	}
	return c.save(path, func(a, b row) int { return cmp.Compare(b.values[2], a.values[2]) })
}

// plotHandOff draws how long the hand-offs took.
func plotHandOff(f *record.File, path string) error {
	c := comparison{
		title: "hand-offs between two processes: so many took at most", unit: "milliseconds",
		marks: []string{"50 of 100", "90 of 100", "99 of 100"},
	}
	for _, s := range f.Under("hand-off", "") {
		if !isTwin(s.Contender) {
			c.addTimes(s, 0.5, 0.9, 0.99)
		}
	}
	return c.save(path, func(a, b row) int { return cmp.Compare(a.values[0], b.values[0]) })
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
	return under(f, workers, func(s record.Series) bool { return slices.Contains(kinds, s.Database) })
}

func picture(pictures, name string) string { return filepath.Join(pictures, "bench-"+name+".svg") }
