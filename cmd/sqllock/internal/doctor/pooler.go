package doctor

import (
	"context"
	"fmt"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/turns"
)

// checkPooler notices a pooler that gives a server connection to another client after each
// transaction, as PgBouncer does with pool_mode=transaction. A session's state is lost then.
func (e *examination) checkPooler(ctx context.Context) []finding {
	if e.Dialect != dialect.Postgres() {
		return nil
	}
	// A pooler of whole sessions that has none left lets the second connection wait.
	ctx, cancel := context.WithTimeout(ctx, session.OpenTimeout)
	defer cancel()
	shared, err := turns.SharesSessions(ctx, e.DB.DB, sqltext.Of(e.Dialect).Turns(sqltext.Names{}).Session)
	if err != nil || !shared {
		return nil // the checks below say what is wrong
	}
	return []finding{poolerFinding(e.Target.Pooled)}
}

func poolerFinding(prepared bool) finding {
	const (
		text   = "clients share the server's sessions after each transaction, as behind PgBouncer with pool_mode=transaction"
		advice = "give pgx default_query_exec_mode=exec, lib/pq binary_parameters=yes; connect package notify to the server itself"
	)
	if prepared {
		return finding{good, "pooler", text + ", for which the DSN has what a driver needs", ""}
	}
	return finding{noteworthy, "pooler", text + ": a statement that is prepared may be met by another client", advice}
}

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
