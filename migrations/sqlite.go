package migrations

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/sqltext"
)

// sqlite runs each call in one transaction, which is the writer from its beginning. This
// excludes other processes. The lock of golang-migrate's driver is a flag in memory: two
// processes that start at the same time would run the same step twice.
var sqlite = flavour{
	columns: "SELECT name, NOT \"notnull\" FROM pragma_table_info('{name}', NULLIF('{schema}', ''))",
	apart: "SELECT t.name, t.schema, 'main' FROM pragma_table_list AS t JOIN pragma_database_list AS d ON d.name = t.schema" +
		" WHERE upper(t.name) IN (upper('{table}'), upper('{table}_FENCE'), upper('{table}_MIGRATIONS')) AND t.schema <> 'main'" +
		" AND (t.schema = 'temp' OR NOT EXISTS (SELECT 1 FROM main.sqlite_master WHERE upper(name) = upper(t.name)))" +
		" ORDER BY upper(t.name), t.schema <> 'temp', d.seq LIMIT 1",
	bookkeeping: createBookkeeping,
	write:       writeVersion,
	lock: func(ctx context.Context, s *session) error {
		if s.script != nil {
			s.script.text.WriteString("-- Run this by: sqlite3 -bail -cmd '.timeout 60000' FILE. Without -bail it goes on after an error, and may drop all locks.\n")
		}
		return s.persist(ctx, "BEGIN IMMEDIATE")
	},
	// Without WAL mode, readers block the commit. It can be retried.
	unlock: func(ctx context.Context, s *session) error { return s.persist(ctx, "COMMIT") },
	undo:   func(ctx context.Context, s *session) error { return s.exec(ctx, "ROLLBACK") },
}

// persist retries a statement while the database is busy: many pools have no busy_timeout.
func (s *session) persist(ctx context.Context, statement string) error {
	const pause = 20 * time.Millisecond
	tick := time.NewTicker(pause)
	defer tick.Stop()
	for start := time.Now(); ; {
		err := s.exec(ctx, statement)
		if err == nil || s.dialect.Classify(err) != sqltext.Transient {
			return err
		}
		if time.Since(start) > migrationWait {
			return fmt.Errorf("%w: the database has been locked by another writer for %v: %w", ErrBusy, migrationWait, err)
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-tick.C:
		}
	}
}
