package exec

import (
	"github.com/sqllock/sqllock/internal/cli/exit"
	"github.com/sqllock/sqllock/internal/cli/format"
)

// renewals returns a function that is called after each renewal. It prints a message
// when renewals begin to fail, and another when they succeed again.
func (x *execution) renewals(h *holding) func(leases int, err error) {
	failing := false
	return func(_ int, err error) {
		switch {
		case err != nil && !failing:
			x.printf("renew %q: %s; trying again while the lease lasts, for %s", x.key, exit.Text(err), format.Duration(h.left()))
		case err == nil && failing:
			x.printf("renewed %q again", x.key)
		}
		failing = err != nil
	}
}
