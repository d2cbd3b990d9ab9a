//go:build linux

package reliability

import (
	"flag"
	"testing"
	"time"
)

var (
	full   = flag.Bool("full", false, "run as many trials as RESULTS.md reports")
	trials = flag.Int("trials", 0, "number of trials of each kind (default: each test's own number)")
	page   = flag.String("page", "", "write the figures to this page")
)

// size returns the number of trials of a test: few in CI, many for the page.
func size(small, large int) int {
	switch {
	case *trials > 0:
		return *trials
	case *full:
		return large
	default:
		return small
	}
}

// longestTTL is long enough for any machine that still runs at times.
const longestTTL = 48 * time.Second

// withTTL calls try with a time-to-live. In CI it calls it again with a longer one if try returns false: a
// lease was lost before the trial began, on a machine or a server that was too slow for it. The figures of the
// page are of the time-to-live given.
func withTTL(t *testing.T, ttl time.Duration, try func(ttl time.Duration) (longEnough bool)) {
	t.Helper()
	for ; !try(ttl) && !t.Failed(); ttl *= 2 {
		if *full || ttl >= longestTTL {
			t.Fatalf("a lease with a time-to-live of %v was lost", ttl)
		}
		t.Logf("a time-to-live of %v was too short", ttl)
	}
}
