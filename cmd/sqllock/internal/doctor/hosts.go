package doctor

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock/internal/session"
)

// checkHosts checks that a DSN with several hosts leads to the one that accepts writes.
func (e *examination) checkHosts(context.Context) []finding { return hostsFindings(e.Target.Choice) }

func hostsFindings(c session.Choice) []finding {
	switch {
	case c.Hosts < 2:
		return nil
	case !c.Any:
		return []finding{{good, "hosts", fmt.Sprintf("%d, and target_session_attrs chooses one", c.Hosts), ""}}
	default:
		return []finding{{
			noteworthy, "hosts", fmt.Sprintf("the DSN has %d: Open chooses the primary, but a pool of your own the first that answers, which may be a standby", c.Hosts),
			"add target_session_attrs=primary, which pgx and lib/pq understand",
		}}
	}
}
