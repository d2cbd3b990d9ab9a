package migrations

import (
	"errors"
	"fmt"

	"github.com/sqllock/sqllock/dialect"
)

// Errors of this package, for errors.Is. An invalid prefix gives dialect.ErrPrefix.
var (
	// ErrDialect is returned for the zero value of a dialect, which names no database.
	ErrDialect = errors.New("no migrations for dialect")
	// ErrOption is returned for an invalid option, and without a database.
	ErrOption = errors.New("invalid option")
	// ErrVersion is returned for a version that does not exist.
	ErrVersion = errors.New("there is no migration version")
	// ErrState is returned if the bookkeeping table contradicts the lock table, or
	// comes from a newer version of this package, and if something is to be changed while [State].Apart
	// is not empty. The message says what to do.
	ErrState = dialect.ErrState
	// ErrHeld is returned if the lock table is not dropped, or does not get EXPIRED_AFTER, because locks are held.
	ErrHeld = errors.New("locks are held")
	// ErrBusy is returned if another migration, or a transaction that uses the lock
	// table, did not end in time. The call can be retried.
	ErrBusy = errors.New("database is busy")
)

func unknown(version uint) error {
	return fmt.Errorf("%w %d: the last one is %d", ErrVersion, version, latest)
}
