package migrations

import (
	"context"
	"fmt"
	"time"
)

// postgres does everything in one transaction, whose locks end with it: that
// works behind PgBouncer's transaction pooling, too.
var postgres = flavour{
	columns: "SELECT attname FROM pg_attribute" +
		" WHERE attrelid = to_regclass('{table}') AND attnum > 0 AND NOT attisdropped",
	bookkeeping: createBookkeeping,
	write:       writeVersion,
	freeze:      "LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE",
	lock:        lockPostgres,
	unlock:      func(ctx context.Context, s *session) error { return s.exec(ctx, "COMMIT") },
	undo:        func(ctx context.Context, s *session) error { return s.exec(ctx, "ROLLBACK") },
}

func lockPostgres(ctx context.Context, s *session) error {
	return s.exec(ctx,
		// Not the session's default, which may be stricter: the statement that
		// waits for the lock would then fix what all later ones see.
		"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
		lockTimeout(migrationWait),
		// Names meet in one lock however they are written. That others meet in
		// it as well does no harm. The first number is ours: "sqll".
		s.bookkeeping.fill("SELECT pg_advisory_xact_lock(1936813164,"+
			" hashtext(lower(COALESCE(NULLIF('{schema}', ''), current_schema(), '') || '.{name}')))"),
		lockTimeout(tableWait),
	)
}

func lockTimeout(d time.Duration) string {
	return fmt.Sprintf("SET LOCAL lock_timeout = %d", d.Milliseconds())
}
