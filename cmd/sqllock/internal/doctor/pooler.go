package doctor

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/session"
)

// poolerTries is how often two connections are compared. Other clients of a pooler may come
// in between.
const poolerTries = 5

// checkPooler notices a pooler that gives a server connection to another client after each
// transaction, as PgBouncer does with pool_mode=transaction. A session's state is lost then.
func (e *examination) checkPooler(ctx context.Context) []finding {
	if e.Dialect.Name != "postgres" {
		return nil
	}
	// A pooler of whole sessions that has none left lets the second connection wait.
	ctx, cancel := context.WithTimeout(ctx, session.OpenTimeout)
	defer cancel()
	for range poolerTries {
		if shared, err := e.shareSession(ctx); err != nil {
			return nil // the checks below say what is wrong
		} else if shared {
			return []finding{poolerFinding(e.Target.Pooled)}
		}
	}
	return nil
}

// shareSession reports whether two connections that are open at the same time are served by one
// session of the server.
func (e *examination) shareSession(ctx context.Context) (bool, error) {
	first, err := e.DB.Connx(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = first.Close() }() // goes back to the pool
	second, err := e.DB.Connx(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = second.Close() }()
	var sessions [2]string
	for i, conn := range []*sqlx.Conn{first, second} {
		const query = "SELECT pg_backend_pid() || ' ' || pg_postmaster_start_time()"
		if err := conn.GetContext(ctx, &sessions[i], query); err != nil {
			return false, err
		}
	}
	return sessions[0] == sessions[1], nil
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
