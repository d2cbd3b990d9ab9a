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
		select {
		case x.renewed <- struct{}{}:
		default: // the keeper has not read the last one yet
		}
		switch {
		case e.Err != nil && !failing:
			x.printf("%q is not renewed: trying again while the lease lasts, for %s: %s", x.name(), format.Duration(h.left()), exit.Text(e.Err))
		case e.Err == nil && failing:
			x.printf("renewed %q again", x.name())
		}
		failing = e.Err != nil
	}
}
