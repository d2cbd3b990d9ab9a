package load

import (
	"maps"
	"math"
	"testing"
	"time"
)

// TestContestCountsWhoOvertakes: of three callers, one asks first and gets nothing while the others acquire three times.
func TestContestCountsWhoOvertakes(t *testing.T) {
	t.Parallel()
	const ms = int64(time.Millisecond)
	entrants := []entrant{{Number: 0, Callers: 1, Kind: "lone"}, {Number: 1, Callers: 2, Kind: "busy"}}
	round := contest{keeps: true}.round(entrants, []call{
		{1, 5 * ms, 15 * ms, true},
		{0, 10 * ms, 100 * ms, false},
		{1, 20 * ms, 30 * ms, true},
		{1, 20 * ms, 40 * ms, true},
	}, 100*time.Millisecond)
	want := map[string]float64{
		"lone/per_s": 0, "lone/p50_ms": 90, "lone/p99_ms": 90, "lone/longest_ms": 90, "lone/waits_on": 1, "lone/least_share": 0, "lone/overtaken": 2,
		"busy/per_s": 30, "busy/p50_ms": 10, "busy/p99_ms": 19.8, "busy/longest_ms": 20, "busy/least_share": 1.5, "busy/overtaken": 0,
	}
	near := func(a, b float64) bool { return math.Abs(a-b) < 1e-9 }
	if !maps.EqualFunc(round.Values, want, near) || len(round.Samples) > 0 {
		t.Errorf("%v, want %v; %v", round.Values, want, round.Samples)
	}
}
