package doctor

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock/internal/cli/dsn"
)

// checkHosts checks that a DSN with several hosts leads to the one that accepts writes.
func (e *examination) checkHosts(context.Context) []finding { return hostsFindings(e.Target) }

func hostsFindings(t dsn.Target) []finding {
	switch {
	case t.Hosts < 2:
		return nil
	case t.ReadWrite:
		return []finding{{good, "hosts", fmt.Sprintf("%d, and the one that accepts writes is chosen", t.Hosts), ""}}
	default:
		return []finding{{
			noteworthy, "hosts", fmt.Sprintf("the DSN has %d and takes the first that answers, which may be a standby, or the former primary after a failover", t.Hosts),
			"add target_session_attrs=read-write, which pgx and lib/pq understand",
		}}
	}
}
