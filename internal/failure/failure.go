// Package failure has the errors that users of sqllock distinguish, and makes them of those of the lock table.
// Package sqllock names the sentinels again, and says there what they mean.
package failure

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
)

// The sentinels. Their meaning stands at those of package sqllock, which have the same names.
var (
	ErrNotAcquired       = errors.New("sqllock: lock not acquired")
	ErrLockLost          = errors.New("sqllock: lock lost")
	ErrDatabase          = errors.New("sqllock: database error")
	ErrSchema      error = &subError{"sqllock: no usable lock table", ErrDatabase}
	ErrReadOnly    error = &subError{"sqllock: database is read-only", ErrDatabase}
	ErrPinned            = errors.New("sqllock: row is pinned by an open transaction")
	ErrInvalid           = errors.New("sqllock: invalid argument")
	ErrNotHeld           = errors.New("sqllock: lock not held")
	ErrCapacity          = errors.New("sqllock: lock cache is full")
	ErrClosed            = errors.New("sqllock: registry is closed")
)

// A subError is a sentinel that is also another one.
type subError struct {
	text   string
	parent error
}

func (e *subError) Error() string { return e.text }
func (e *subError) Unwrap() error { return e.parent }

// Invalid makes an ErrInvalid.
func Invalid(format string, args ...any) error {
	return As(ErrInvalid, "", fmt.Errorf(format, args...))
}

// As makes an error of a kind, which is a sentinel, of one that may be of that kind already: the text names it once. op is
// what has failed, or "".
func As(kind error, op string, err error) error {
	for _, narrower := range []error{ErrSchema, ErrReadOnly} {
		if errors.Is(narrower, kind) && errors.Is(err, narrower) {
			kind = narrower
		}
	}
	return &kindError{kind, op, err}
}

// A kindError is an error of a kind. It makes "sqllock: database error: close: …".
type kindError struct {
	kind error
	op   string
	err  error
}

func (e *kindError) Error() string {
	text := e.kind.Error()
	if e.op != "" {
		text += ": " + e.op
	}
	first, rest, more := strings.Cut(e.err.Error(), "\n")
	if first != e.kind.Error() {
		first = strings.ReplaceAll(first, e.kind.Error()+": ", "")
		first = strings.ReplaceAll(first, strings.TrimPrefix(e.kind.Error(), "sqllock: ")+": ", "") // of a cause, which has no "sqllock: "
		text += ": " + strings.TrimPrefix(first, e.op+": ")
	}
	if more {
		text += "\n" + rest
	}
	return text
}

func (e *kindError) Unwrap() []error { return []error{e.kind, e.err} }

// A tableError is an error of the lock table, with the sentinel that it means and the key as
// the user wrote it. It makes "sqllock: database error: acquire "orders/42": …".
type tableError struct {
	sentinel error // nil if the caller's context has ended
	key      string
	table    *dbcall.Error
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
	text += ": " + WithCure(e.table.Err).Error()
	switch kind := e.table.Kind; {
	case kind == dbcall.NoTable && e.table.Op == dbcall.GuardOp:
		text += " (the transaction must be in the database and the schema of the lock)"
	case kind == dbcall.NoTable, kind == dbcall.NoFenceOfFive:
		text += " (run `" + dbcall.MigrateUp(e.table.Prefix) + "`, or see docs/schema.md)"
	case kind == dbcall.OtherLayout:
		text += " (the lock table has another layout than this process found at its start: restart the process)"
	case kind == dbcall.NoFence:
		text += " (run `" + dbcall.MigrateUp(e.table.Prefix) + " --layout spring6`, or see docs/schema.md)"
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

// Of translates an error of the lock table about key, which may be "". Several errors that
// are joined are translated one by one. Other errors, and nil, stay what they are.
func Of(err error, key string) error {
	switch e := err.(type) { //nolint:errorlint // the lock table wraps none of its errors
	case *tableError, *kindError: // it was translated before
		return err
	case *dbcall.Error:
		return &tableError{sentinelOf(e.Kind), key, e}
	case interface{ Unwrap() []error }:
		var all error
		for _, one := range e.Unwrap() {
			all = errors.Join(all, Of(one, key))
		}
		return all
	default:
		return err
	}
}

// Kinded makes an ErrDatabase of an error of [Of] that says that a context has ended, if it
// was not ctx, the caller's: the deadline that the lease had when the statement was sent has
// passed, and the lease was renewed meanwhile. So the error has a kind.
func Kinded(ctx context.Context, err error) error {
	if bounded.Ended(ctx) == nil {
		return AsDatabase(err)
	}
	return err
}

// AsDatabase makes an ErrDatabase of an error of [Of] that says that a context has
// ended: one of ours, and not the caller's.
func AsDatabase(err error) error {
	var e *tableError
	if errors.As(err, &e) && e.sentinel == nil {
		return &tableError{ErrDatabase, e.key, e.table}
	}
	return err
}

// longSilence is longer than an answer takes on any server that works.
const longSilence = 5 * time.Second

// IsSilence reports whether a wait that its limit has ended has found out nothing but that the database does not
// answer, if it has had no answer for so long at its end: there may have been answers, of which the last one is late.
// A wait of less than an answer may take says nothing.
func IsSilence(silent, wait time.Duration) bool {
	return silent >= longSilence || silent >= bounded.Grace && silent >= wait/2
}

// SilenceOf returns for how long the statement had no answer that an error of [Of] is about, or 0 if it had one.
func SilenceOf(err error) time.Duration {
	var e *tableError
	if errors.As(err, &e) {
		return e.table.Silent
	}
	return 0
}

// Silent makes an ErrDatabase of an attempt to acquire key that had no answer for so long.
func Silent(key string, silent time.Duration) error {
	return Of(&dbcall.Error{
		Op: "acquire", Kind: dbcall.NoAnswer, Silent: silent,
		Err: fmt.Errorf("%w for %v", bounded.ErrNoAnswer, silent.Round(time.Millisecond)),
	}, key)
}

// Outage returns the error that the database has answered as an ErrDatabase about key, without what has then ended a wait for
// the outage to pass. It returns nil if err has none.
func Outage(err error, key string) error {
	var e *tableError
	if !errors.As(err, &e) || !errors.Is(e.sentinel, ErrDatabase) || e.table.Kind == dbcall.NoAnswer {
		return nil
	}
	return Of(e.table, key)
}

// CutShort makes the error of a call of ctx whose wait its limit has ended before the database has answered.
func CutShort(ctx context.Context, silent error) error {
	if ended := bounded.Ended(ctx); ended != nil {
		return fmt.Errorf("%w: %w", silent, ended)
	}
	return silent
}

// Join joins the error of a function that was run under a lease with that of Unlock, unless it has that already: the lease is
// lost, and both say so, or the function has unlocked itself.
func Join(err, unlocked error) error {
	lost := errors.Is(err, ErrLockLost) && errors.Is(unlocked, ErrLockLost)
	if unlocked != nil && (errors.Is(err, unlocked) || lost && strings.Contains(err.Error(), unlocked.Error())) {
		return err
	}
	return errors.Join(err, unlocked)
}

func sentinelOf(kind dbcall.Kind) error {
	switch kind {
	case dbcall.Ended:
		return nil
	case dbcall.PinnedRow:
		return ErrPinned
	case dbcall.ReadOnly:
		return ErrReadOnly
	case dbcall.NoTable, dbcall.OtherLayout, dbcall.NoFence, dbcall.NoFenceOfFive, dbcall.WrongTable:
		return ErrSchema
	case dbcall.WrongDialect, dbcall.Unsupported, dbcall.WrongIsolation, dbcall.WrongSession, dbcall.OneRow, dbcall.WrongTx:
		return ErrInvalid
	default:
		return ErrDatabase
	}
}
