//go:build linux

package reliability

import (
	"flag"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/program"
)

var (
	full   = flag.Bool("full", false, "run as many trials as docs/reliability.md reports")
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

// withTTL calls try with a time-to-live. In CI it calls it again with longer ones while try returns
// false: a lease was lost, and the machine may have stood still for that long. The figures of the page
// are of the time-to-live given.
func withTTL(t *testing.T, ttl time.Duration, try func(ttl time.Duration) (longEnough bool)) {
	t.Helper()
	if !*full {
		program.WithTTL(t, ttl, func(ttl time.Duration) bool { return try(ttl) || t.Failed() })
		return
	}
	if !try(ttl) {
		t.Errorf("a lease with a time-to-live of %v was lost", ttl)
	}
}
