package doctor

import (
	"context"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
)

func (e *examination) checkWrites(ctx context.Context) []finding {
	var readOnly int
	switch err := e.DB.GetContext(ctx, &readOnly, e.statements.ReadOnly); {
	case err != nil:
		return []finding{{noteworthy, "writes", "not known whether they are accepted: " + exit.Text(err), "the round trip below tests it"}}
	case readOnly != 0:
		return []finding{e.readOnlyFinding()}
	default:
		return []finding{{good, "writes", "accepted", ""}}
	}
}

// readOnlyFinding returns the finding for a database that rejects writes.
func (e *examination) readOnlyFinding() finding {
	if e.Dialect.Embedded {
		return finding{broken, "writes", "rejected: the file is opened read-only", "give " + sqlitedriver.WritableHint + ", without parameters like mode=ro: to acquire a lock is to write a row"}
	}
	return finding{broken, "writes", "rejected: the server is a replica or set to read-only", "give the DSN of the primary server: to acquire a lock is to write a row"}
}
