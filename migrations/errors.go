package migrations

import "errors"

// Errors of this package, for errors.Is. A prefix that is not one gives
// dialect.ErrPrefix.
var (
	// ErrDialect is returned for a dialect that has no migrations.
	ErrDialect = errors.New("no migrations for dialect")
	// ErrOption is returned for options that make no sense.
	ErrOption = errors.New("invalid option")
	// ErrVersion is returned for a version that there is not.
	ErrVersion = errors.New("no migration version")
	// ErrState is returned when the bookkeeping table does not fit the database
	// or this package. The message says why, and what to do.
	ErrState = errors.New("unusable state of migrations")
	// ErrHeld is returned instead of dropping a table in which locks are held.
	ErrHeld = errors.New("locks are held")
	// ErrBusy is returned when another migration, or a transaction that uses
	// the lock table, did not end in time. The call may be repeated.
	ErrBusy = errors.New("database is busy")
)
