package exec

import (
	"context"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/format"
	"github.com/sqllock/sqllock/observe"
)

// renewals returns a function that is called after each renewal. It prints a message
// when renewals begin to fail, and another when they succeed again.
func (x *execution) renewals(h *holding) func(context.Context, observe.Renewal) {
	failing := false
	return func(_ context.Context, e observe.Renewal) {
		switch {
		case e.Err != nil && !failing:
			x.printf("renew %q: %s; trying again while the lease lasts, for %s", x.name(), exit.Text(e.Err), format.Duration(h.left()))
		case e.Err == nil && failing:
			x.printf("renewed %q again", x.name())
		}
		failing = e.Err != nil
		select {
		case x.renewed <- struct{}{}:
		default: // the guard has not read the last one yet
		}
	}
}
