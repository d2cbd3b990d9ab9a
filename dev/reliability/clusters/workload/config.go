//go:build linux

package workload

import (
	"context"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/reliability/clusters/checker"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

// A Config describes the load.
type Config struct {
	Target Target
	// Isolation is that of the acquisitions.
	Isolation sqllock.Isolation
	// TTL is the time-to-live of all leases. Half of them are renewed, until MaxHold.
	TTL, MaxHold time.Duration
	// Stay is the longest time for which a holder that is not in a transaction keeps a lock, unless it waits for its lease to end.
	Stay time.Duration
	// Processes, each with so many Goroutines, compete for the locks of [Ways].
	Processes, Goroutines int
	// Shared has all of them compete for the read-write lock, which depends on reads as no other does.
	Shared bool
	// Fair has half of the processes acquire in the order of arrival. It is refused where
	// there are several nodes to write to.
	Fair bool
	// Unaware has sqllock not ask the server for its cluster, so that no read waits, and guards by the
	// locking read that is enough on a single server: the negative control.
	Unaware bool
	// Outlive has each holder do nothing but write in one guarded transaction, which may outlive
	// its lease by as long as that lasts.
	Outlive bool
	// Hasty has each holder give its lock back within some milliseconds.
	Hasty bool
	// Kill has workers killed with SIGKILL, and stopped with SIGSTOP, every now and then.
	Kill bool
	// Seed is that of all random choices.
	Seed uint64
	// History is the directory of the history.
	History string
}

// Standard is the load of the campaign on a target.
func Standard(t Target, seed uint64, history string) Config {
	return Config{
		Target: t, TTL: 2 * time.Second, MaxHold: 4 * time.Second, Stay: 4 * time.Second, Processes: 6, Goroutines: 3,
		Kill: true, Seed: seed, History: history,
	}
}

// Repository returns the options of the repositories.
func (c Config) Repository() *sqllock.RepositoryOptions {
	options := &sqllock.RepositoryOptions{Isolation: c.Isolation, TTL: c.TTL}
	if c.Unaware {
		options.Layout = dialect.Spring7 // then nothing is asked
	}
	return options
}

// createRows is the table of what is written under the locks. "later" and "earlier" are counts: see
// [checker.Row]. An insertion conflicts with no other, so that nothing but Guard keeps a late one
// out.
var createRows = []string{
	`CREATE TABLE written (id VARCHAR(60) PRIMARY KEY, name VARCHAR(60) NOT NULL, token BIGINT NOT NULL,
guarded BOOLEAN NOT NULL, earlier INTEGER NOT NULL, later INTEGER NOT NULL)`,
	`CREATE INDEX written_by_token ON written (name, guarded, token)`,
}

// Prepare creates the tables.
func Prepare(ctx context.Context, t Target) error {
	db, err := t.Open(0, 2)
	if err != nil {
		return err
	}
	defer db.Close() //nolint:errcheck // the statements' errors say more
	if err := migrations.Up(ctx, db.DB, t.Dialect(), nil); err != nil {
		return err
	}
	for _, statement := range createRows {
		if _, err := db.ExecContext(ctx, statement); err != nil {
			return err
		}
	}
	return nil
}

// Rows reads what was written. The database must have been healed.
func Rows(ctx context.Context, t Target) (rows []checker.Row, err error) {
	db, err := t.Open(0, 1)
	if err != nil {
		return nil, err
	}
	defer db.Close() //nolint:errcheck // it was only read from
	return rows, readRows(ctx, db, &rows)
}

func readRows(ctx context.Context, db *sqlx.DB, rows *[]checker.Row) error {
	return db.SelectContext(ctx, rows, "SELECT id, name, token, guarded, earlier, later FROM written")
}
