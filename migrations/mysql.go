package migrations

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"
)

// mysql cannot change the schema in a transaction. Its lock belongs to the session. The
// session ends with the call, so its settings do not reach the caller's pool.
var mysql = flavour{
	columns: "SELECT COLUMN_NAME, IS_NULLABLE = 'YES' FROM information_schema.COLUMNS" +
		" WHERE TABLE_SCHEMA = COALESCE(NULLIF('{schema}', ''), DATABASE()) AND TABLE_NAME = '{name}'",
	probe:       "SELECT 1 FROM {table} WHERE 1 = 0",
	bookkeeping: createBookkeeping + " ENGINE=InnoDB",
	write:       append(append([]string{"START TRANSACTION"}, writeVersion...), "COMMIT"),
	lock:        lockMySQL,
	unlock:      endMySQL,
	undo:        endMySQL,
}

// lockName is that of the lock. Names of locks have at most 64 characters. MySQL 9.6 no longer has MD5.
const lockName = "CONCAT('sqllock.', LEFT(SHA2(LOWER(CONCAT(COALESCE(NULLIF('{schema}', ''), DATABASE(), ''), '.{name}')), 256), 32))"

func lockMySQL(ctx context.Context, s *session) error {
	seconds := int(tableWait.Seconds())
	if err := s.exec(ctx,
		// Otherwise all reads would use the snapshot of the first one, which was taken
		// before the lock was acquired.
		"SET SESSION autocommit = 1",
		fmt.Sprintf("SET SESSION lock_wait_timeout = %d", seconds), // for a table
		"SET SESSION sql_select_limit = DEFAULT",                   // with a limit of the session, Vitess refuses GET_LOCK
	); err != nil {
		return err
	}
	// Dolt refuses it, and waits for no row.
	_ = s.exec(ctx, fmt.Sprintf("SET SESSION innodb_lock_wait_timeout = %d", seconds))
	if s.script != nil {
		return nil
	}
	// It waits one second at a time, because the server may notice only after the wait
	// that the client has disconnected.
	query := s.bookkeeping.fill("SELECT GET_LOCK(" + lockName + ", 1)")
	for start := time.Now(); time.Since(start) < migrationWait; {
		var got sql.NullInt64
		if err := s.conn.QueryRowContext(ctx, query).Scan(&got); err != nil {
			return fmt.Errorf("%s: %w", query, err)
		}
		if got.Int64 == 1 {
			return s.exec(ctx, "SET SESSION sql_select_limit = 9223372036854775807") // whatever it is for all sessions
		}
		if !got.Valid {
			return fmt.Errorf("%s: %w", query, errors.New("the server returned NULL"))
		}
	}
	return fmt.Errorf("%w: another migration has been running for %v", ErrBusy, migrationWait)
}

// endMySQL ends the session. It releases the lock first: a proxy may keep the session for other clients, and OceanBase
// keeps the locks of a session that has ended for a quarter of an hour.
func endMySQL(ctx context.Context, s *session) error {
	if s.script != nil {
		return nil
	}
	_ = s.exec(ctx, s.bookkeeping.fill("SELECT RELEASE_LOCK("+lockName+")")) // an error changes nothing: the session ends
	discard(s.conn)
	return nil
}
