package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// mysql has no transactions around changes of the schema. Its lock belongs to
// the session, which ends with the call, so that neither the lock nor the
// session's settings find their way into the caller's pool.
var mysql = flavour{
	columns: "SELECT COLUMN_NAME FROM information_schema.COLUMNS" +
		" WHERE TABLE_SCHEMA = COALESCE(NULLIF('{schema}', ''), DATABASE()) AND TABLE_NAME = '{name}'",
	bookkeeping: createBookkeeping + " ENGINE=InnoDB",
	write:       append(append([]string{"START TRANSACTION"}, writeVersion...), "COMMIT"),
	lock:        lockMySQL,
	unlock:      endMySQL,
	undo:        endMySQL,
}

func lockMySQL(ctx context.Context, s *session) error {
	seconds := int(tableWait.Seconds())
	if err := s.exec(ctx,
		// Or else all reads show what the first one saw, before the lock was held.
		"SET SESSION autocommit = 1",
		fmt.Sprintf("SET SESSION lock_wait_timeout = %d", seconds), // for a table
		fmt.Sprintf("SET SESSION innodb_lock_wait_timeout = %d", seconds),
	); err != nil {
		return err
	}
	// One second at a time, because the server may notice only after a wait that
	// the caller has gone. Names of locks have 64 characters at most. MySQL 9.6
	// has no MD5 any more.
	query := s.bookkeeping.fill("SELECT GET_LOCK(CONCAT('sqllock.', LEFT(SHA2(LOWER(CONCAT(" +
		"COALESCE(NULLIF('{schema}', ''), DATABASE(), ''), '.{name}')), 256), 32)), 1)")
	for start := time.Now(); time.Since(start) < migrationWait; {
		var got sql.NullInt64
		if err := s.conn.QueryRowContext(ctx, query).Scan(&got); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		if got.Int64 == 1 {
			return nil
		}
		if !got.Valid {
			return fmt.Errorf("%s: %w", query, errors.New("the server gave no answer"))
		}
	}
	return fmt.Errorf("%w: another migration has run for %v", ErrBusy, migrationWait)
}

func endMySQL(_ context.Context, s *session) error {
	discard(s.conn)
	return nil
}
