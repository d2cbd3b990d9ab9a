package stats_test

import (
	"math"
	"testing"

	"github.com/sqllock/sqllock/dev/bench/internal/stats"
	"github.com/sqllock/sqllock/internal/test/check"
)

func TestSummarize(t *testing.T) {
	t.Parallel()
	values := []float64{3, 1, 2, 10}
	got := stats.Summarize(values)
	if want := (stats.Summary{Median: 2.5, Min: 1, Max: 10, N: 4}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
	if values[0] != 3 {
		t.Error("the values were sorted in place")
	}
	check.Equal(t, "of nothing", stats.Summarize(nil), (stats.Summary{}))
}

func TestQuantile(t *testing.T) {
	t.Parallel()
	sorted := []float64{10, 20, 30, 40, 50}
	for q, want := range map[float64]float64{0: 10, 0.25: 20, 0.5: 30, 0.9: 46, 1: 50} {
		if got := stats.Quantile(sorted, q); math.Abs(got-want) > 1e-9 {
			t.Errorf("%v: %v, want %v", q, got, want)
		}
	}
	if !math.IsNaN(stats.Quantile(nil, 0.5)) {
		t.Error("a quantile of nothing")
	}
}
