package sqllock

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/locktable"
)

// The errors of this package, to be found with errors.Is. They fall into four groups that are
// never confused: not acquired, lost, database error, bad input.
var (
	// ErrNotAcquired is returned if a lock was not acquired before a timeout, before ctx
	// ended, or by a single try. The error is a [*HeldError], which says who holds the lock,
	// where that is known. If the caller's context ended the wait, errors.Is finds
	// context.Canceled or context.DeadlineExceeded too.
	ErrNotAcquired = errors.New("sqllock: lock not acquired")

	// ErrLockLost is returned if a lease ended before its holder unlocked it: its
	// time-to-live ran out, or its row was taken over or deleted. Work done under the lock
	// may have overlapped with another holder's. It is also the cause with which
	// [Lease.Context] ends. Spring throws a ConcurrentModificationException.
	ErrLockLost = errors.New("sqllock: lock lost")

	// ErrDatabase is returned for every error of the database that has no meaning for
	// locks: it cannot be reached, does not answer, or one of the two below. errors.As finds
	// the driver's own error in it.
	ErrDatabase = errors.New("sqllock: database error")

	// ErrSchema is an ErrDatabase: the lock table is missing or has other columns than
	// expected. `sqllock migrate up` creates it.
	ErrSchema error = &subError{"sqllock: no usable lock table", ErrDatabase}

	// ErrReadOnly is an ErrDatabase: the server or the session refuses writes, as a replica
	// does.
	ErrReadOnly error = &subError{"sqllock: database is read-only", ErrDatabase}

	// ErrPinned is returned if a row can be neither renewed nor deleted because an open
	// transaction has it pinned, in which [Lease.Guard] was called. Commit the transaction,
	// or roll it back, before Unlock.
	ErrPinned = errors.New("sqllock: row is pinned by an open transaction")

	// ErrInvalid is returned for bad input: an empty or over-long key, region, prefix or
	// client id, a duration out of range. Nothing was done.
	ErrInvalid = errors.New("sqllock: invalid argument")

	// ErrNotHeld is returned by a lease after Unlock, by a nil lease, and by
	// [Registry.LeaseFrom] and [Registry.RenewLock] for a context that carries no lease of
	// the key. Spring throws an IllegalMonitorStateException.
	ErrNotHeld = errors.New("sqllock: lock not held")

	// ErrCapacity is returned by [Registry.Obtain], and by a handle whose lock was evicted
	// since, if the cache is full of locks that are held or waited for. Spring throws a
	// CannotAcquireLockException.
	ErrCapacity = errors.New("sqllock: lock cache is full")

	// ErrClosed is returned by a registry after Close, and is the cause with which the
	// contexts of its leases end.
	ErrClosed = errors.New("sqllock: registry is closed")
)

// A subError is a sentinel that is also another one.
type subError struct {
	text   string
	parent error
}

func (e *subError) Error() string { return e.text }
func (e *subError) Unwrap() error { return e.parent }

// A HeldError says why a lock was not acquired and, as far as known, who holds it. errors.Is
// finds [ErrNotAcquired] in it.
type HeldError struct {
	// Key is the key as the caller wrote it.
	Key string
	// Holder is the CLIENT_ID of the row, or "" if it is not known: the lock was about to
	// change hands.
	Holder string
	// Left is how long the row had still to last, by the database's clock. The lock need
	// not be free then: leases are renewed. For a holder in the same registry, about which
	// the database is not asked, Left counts from before the holder's last statement was
	// sent: the row may last longer, by at most the time that this statement took.
	Left time.Duration

	cause error // what ended the wait, or nil
}

// Error implements error.
func (e *HeldError) Error() string {
	text := fmt.Sprintf("%v: %q", ErrNotAcquired, e.Key)
	if e.Holder != "" {
		text += fmt.Sprintf(" is held by %s for another %v", e.Holder, e.Left.Round(time.Millisecond))
	}
	if e.cause != nil {
		text += ": " + e.cause.Error()
	}
	return text
}

// Unwrap returns ErrNotAcquired and what ended the wait, if anything did.
func (e *HeldError) Unwrap() []error {
	if e.cause == nil {
		return []error{ErrNotAcquired}
	}
	return []error{ErrNotAcquired, e.cause}
}

// notAcquired describes a wait that ctx has ended, or a try if it has not.
func notAcquired(ctx context.Context, key string, seen locktable.Row) error {
	return &HeldError{Key: key, Holder: seen.Holder, Left: max(seen.Left, 0), cause: bounded.Ended(ctx)}
}

// invalid makes an ErrInvalid.
func invalid(format string, args ...any) error {
	return fmt.Errorf("%w: %w", ErrInvalid, fmt.Errorf(format, args...))
}

// A tableError is an error of the lock table, with the sentinel that it means and the key as
// the user wrote it. It makes "sqllock: database error: acquire "orders/42": …".
type tableError struct {
	sentinel error // nil if the caller's context has ended
	key      string
	table    *locktable.Error
}

func (e *tableError) Error() string {
	text := "sqllock"
	if e.sentinel != nil {
		text = e.sentinel.Error()
	}
	if e.table.Op != "" {
		text += ": " + e.table.Op
	}
	if e.key != "" {
		text += fmt.Sprintf(" %q", e.key)
	}
	text += ": " + e.table.Err.Error()
	switch e.table.Kind {
	case locktable.NoTable:
		text += " (run `sqllock migrate up`, or see docs/schema.md)"
	case locktable.NoFence:
		text += " (run `sqllock migrate up --layout spring6`, or see docs/schema.md)"
	default:
	}
	return text
}

func (e *tableError) Unwrap() []error {
	if e.sentinel == nil {
		return []error{e.table}
	}
	return []error{e.sentinel, e.table}
}

// failure translates an error of the lock table about key, which may be "". Several errors that
// are joined are translated one by one. Other errors, and nil, stay what they are.
func failure(err error, key string) error {
	switch e := err.(type) { //nolint:errorlint // the lock table wraps none of its errors
	case *locktable.Error:
		return &tableError{sentinelOf(e.Kind), key, e}
	case interface{ Unwrap() []error }:
		var all error
		for _, one := range e.Unwrap() {
			all = errors.Join(all, failure(one, key))
		}
		return all
	default:
		return err
	}
}

// kinded makes an ErrDatabase of an error of [failure] that says that a context has ended, if it
// was not ctx, the caller's: the deadline that the lease had when the statement was sent has
// passed, and the lease was renewed meanwhile. So the error has a kind.
func kinded(ctx context.Context, err error) error {
	if bounded.Ended(ctx) == nil {
		return asDatabaseError(err)
	}
	return err
}

// asDatabaseError makes an ErrDatabase of an error of [failure] that says that a context has
// ended: one of ours, and not the caller's.
func asDatabaseError(err error) error {
	var e *tableError
	if errors.As(err, &e) && e.sentinel == nil {
		return &tableError{ErrDatabase, e.key, e.table}
	}
	return err
}

func sentinelOf(kind locktable.Kind) error {
	switch kind {
	case locktable.Ended:
		return nil
	case locktable.PinnedRow:
		return ErrPinned
	case locktable.ReadOnly:
		return ErrReadOnly
	case locktable.NoTable, locktable.NoFence, locktable.WrongTable:
		return ErrSchema
	case locktable.WrongDialect, locktable.WrongIsolation, locktable.WrongSession, locktable.OneRow, locktable.WrongTx:
		return ErrInvalid
	default:
		return ErrDatabase
	}
}

// isNoAnswer reports whether err means that the database did not answer in time.
func isNoAnswer(err error) bool { return locktable.Is(err, locktable.NoAnswer) }

// isOutcomeUnknown reports whether err means that the holder of an acquisition must not be
// used again although the database answers.
func isOutcomeUnknown(err error) bool { return locktable.Is(err, locktable.OutcomeUnknown) }
