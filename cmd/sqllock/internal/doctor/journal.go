package doctor

import (
	"context"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// checkJournal checks that the journal mode is WAL, in which readers and writers do not
// block each other.
func (e *examination) checkJournal(ctx context.Context) []finding {
	var mode string
	if err := e.DB.GetContext(ctx, &mode, "PRAGMA journal_mode"); err != nil {
		return []finding{{noteworthy, "journal", "its mode is not known: " + exit.Text(err), "check that the file is an SQLite database"}}
	}
	if mode != "wal" {
		return []finding{{noteworthy, "journal", "mode " + mode + ": programs that list locks block programs that acquire them", "run PRAGMA journal_mode = WAL once in the database"}}
	}
	return []finding{{good, "journal", "mode WAL", ""}}
}
