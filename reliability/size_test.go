//go:build linux

package reliability

import "flag"

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
