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
	case c.ReadWrite:
		return []finding{{good, "hosts", fmt.Sprintf("%d, and the one that accepts writes is chosen", c.Hosts), ""}}
	default:
		return []finding{{
			noteworthy, "hosts", fmt.Sprintf("the DSN has %d and takes the first that answers, which may be a standby, or the former primary after a failover", c.Hosts),
			"add target_session_attrs=read-write, which pgx and lib/pq understand",
		}}
	}
}
