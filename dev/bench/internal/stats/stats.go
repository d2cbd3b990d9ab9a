// Package stats computes medians, extremes and quantiles of measurements.
package stats

import (
	"math"
	"slices"
)

// A Summary summarizes a value over several rounds.
type Summary struct {
	Median, Min, Max float64
	N                int
}

// Summarize returns the summary of values, which may be in any order. Without
// values it is zero.
func Summarize(values []float64) Summary {
	if len(values) == 0 {
		return Summary{}
	}
	sorted := slices.Sorted(slices.Values(values))
	return Summary{
		Median: Quantile(sorted, 0.5),
		Min:    sorted[0],
		Max:    sorted[len(sorted)-1],
		N:      len(sorted),
	}
}

// Quantile returns the value below which a part q of the sorted values lies,
// interpolated between its neighbours. Without values it is not a number.
func Quantile(sorted []float64, q float64) float64 {
	if len(sorted) == 0 {
		return math.NaN()
	}
	place := q * float64(len(sorted)-1)
	below := int(place)
	if below+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	part := place - float64(below)
	return sorted[below]*(1-part) + sorted[below+1]*part
}
