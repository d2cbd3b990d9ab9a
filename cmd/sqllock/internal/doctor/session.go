package doctor

import (
	"context"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// checkSession reports a pooler in front of the server that refuses the settings of a session.
func (e *examination) checkSession(context.Context) []finding {
	if e.Pooler() == nil {
		return nil
	}
	return []finding{{
		noteworthy, "session", exit.Text(e.Pooler()),
		"pgxlock.Open and pqlock.Open fall back here: explicit transactions, no prepared statements; a DSN of the server itself saves two round trips for each lock",
	}}
}
