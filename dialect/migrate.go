package dialect

import (
	"context"
	"database/sql"
	"errors"
	"time"
)

// A Migrate function creates the lock tables, or brings them up to date: migrations.Up, or a function that
// calls it with other options. It is the type of the option Migrate of pgxlock, pqlock and mysqllock, so that
// only applications that set it link migrations.Up, and golang-migrate with it.
//
// It returns [ErrState], or an error of the database. It does not close db.
type Migrate func(ctx context.Context, db *sql.DB, d Dialect, opts *MigrateOptions) error

// ErrState is the same as migrations.ErrState: the bookkeeping table contradicts the lock table, or comes
// from a newer version of sqllock; or new tables would hide those of another schema. The message says what to do.
var ErrState = errors.New("unusable state of migrations")

// MigrateOptions are the settings of a migration, the same as migrations.Options. Nil and the zero value
// mean Spring's defaults.
type MigrateOptions struct {
	// Prefix is the prefix of the tables' names: see [ErrPrefix]. If it contains a schema, the
	// schema must exist. Default [DefaultPrefix].
	Prefix string

	// Layout is the layout to which migrations.Up migrates. [Spring6] makes a table that Spring
	// Integration 6 or older can share. [Spring7] adds the column EXPIRED_AFTER to a table without
	// it, after which these no longer work. Default: that of the lock table, or [Spring7] if there
	// is none.
	Layout Layout

	// TTL is the time-to-live of the existing locks. When EXPIRED_AFTER is added, all
	// existing rows get leases of this length; so use the longest time-to-live of all
	// processes. It is rounded down to microseconds. Default 10 s, Spring's.
	TTL time.Duration

	// If Force is true, the lock table is dropped, or gets the column EXPIRED_AFTER, even if locks are held.
	Force bool
}
