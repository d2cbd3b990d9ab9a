package doctor

import (
	"context"
	"errors"
	"fmt"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/dialect"
)

func (e *examination) checkTable(ctx context.Context) []finding {
	// checkFence checks the source of fencing tokens.
	r, err := e.flags.Repository(ctx, e.Connection, sqllock.RepositoryOptions{ClientID: "doctor", DisableFencing: true})
	if err != nil {
		return []finding{{broken, "table", exit.Text(err), e.tableAdvice(ctx, err)}}
	}
	e.repository = r
	text := e.names.Lock + ", layout " + r.Layout().String()
	if r.Layout() == dialect.Spring6 {
		return []finding{{
			good, "table", text + " (no EXPIRED_AFTER)",
			"all programs that use the table must have the same time-to-live; when no Spring before 7 uses it any more: sqllock migrate up --layout spring7",
		}}
	}
	return []finding{{good, "table", text, ""}}
}

// checkFence checks the source of fencing tokens. Spring's own script does not create it.
func (e *examination) checkFence(ctx context.Context) []finding {
	if e.repository == nil {
		return nil
	}
	r, err := e.flags.Repository(ctx, e.Connection, sqllock.RepositoryOptions{ClientID: "doctor"})
	if err != nil {
		return []finding{{broken, "fence", exit.Text(err), e.fenceAdvice(err)}}
	}
	e.repository = r
	return []finding{{good, "fence", "fencing tokens come from " + e.names.Fence, ""}}
}

func (e *examination) fenceAdvice(err error) string {
	if errors.Is(err, sqllock.ErrSchema) && !e.MissesTable(err) {
		return "docs/schema.md has the statements (MariaDB's sequence): stop the programs that use locks first"
	}
	return fmt.Sprintf("sqllock migrate up --layout %v creates it beside the table; without it a program can only lock with the option DisableFencing",
		e.repository.Layout())
}

func (e *examination) tableAdvice(ctx context.Context, err error) string {
	switch {
	case e.cluster.Problem() != nil:
		return "see the line about the cluster above"
	case e.MissesTable(err):
		return connect.MigrateUp(e.flags.Prefix) + " creates it; --prefix selects another"
	case errors.Is(err, sqllock.ErrSchema) && e.hasWrongTimes(ctx):
		return "see the line about precision below"
	case errors.Is(err, sqllock.ErrSchema):
		return "select another table with --prefix, or change this one while no program uses it"
	default:
		return e.rightsAdvice()
	}
}
