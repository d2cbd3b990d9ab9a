package migrations

import (
	"context"
	"fmt"
	"time"
)

// postgres runs each call in one transaction. All locks end with the transaction, so this
// also works with PgBouncer's transaction pooling.
var postgres = flavour{
	columns: "SELECT attname, NOT attnotnull OR EXISTS (SELECT FROM pg_constraint WHERE conrelid = attrelid AND contype = 'n' AND conkey[1] = attnum AND NOT convalidated) FROM pg_attribute" +
		" WHERE attrelid = to_regclass('{table}') AND attnum > 0 AND NOT attisdropped",
	apart: "SELECT name, quote_ident(nspname), COALESCE(quote_ident(current_schema()), '')" +
		" FROM unnest(ARRAY['{table}', '{table}_FENCE', '{table}_MIGRATIONS']) AS name" +
		" JOIN pg_class ON pg_class.oid = to_regclass(name) JOIN pg_namespace ON pg_namespace.oid = relnamespace" +
		" WHERE nspname IS DISTINCT FROM current_schema() ORDER BY name LIMIT 1",
	bookkeeping: createBookkeeping,
	write:       writeVersion,
	freeze:      "LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE",
	lock:        lockPostgres,
	unlock:      func(ctx context.Context, s *session) error { return s.exec(ctx, "COMMIT") },
	undo:        func(ctx context.Context, s *session) error { return s.exec(ctx, "ROLLBACK") },
}

func lockPostgres(ctx context.Context, s *session) error {
	return s.exec(ctx,
		// The session's default may be stricter. Then all later statements would use the
		// snapshot that was taken before the lock was acquired.
		"BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE",
		lockTimeout(migrationWait),
		// All spellings of a name use the same lock. If another name has the same hash,
		// the migrations only wait for each other. The first number is "sqll" in ASCII.
		s.bookkeeping.fill("SELECT pg_advisory_xact_lock(1936813164,"+
			" hashtext(lower(COALESCE(NULLIF('{schema}', ''), current_schema(), '') || '.{name}')))"),
		lockTimeout(tableWait),
	)
}

func lockTimeout(d time.Duration) string {
	return fmt.Sprintf("SET LOCAL lock_timeout = %d", d.Milliseconds())
}
