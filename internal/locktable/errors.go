package locktable

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
)

// A Kind says what an [Error] means to the caller of a method.
type Kind int

const (
	// Failed is a database error without a meaning of its own.
	Failed Kind = iota
	// Ended means that the caller's context ended first. Err is its cause.
	Ended
	// NoAnswer means that the database did not answer in time.
	NoAnswer
	// Race means that the statement lost a race and was not applied.
	Race
	// OutcomeUnknown means that an acquisition lost a race after it had written its row, or was refused
	// after it had been sent on a connection that was closed. The row is being deleted, maybe late, so
	// the holder must not be used again.
	OutcomeUnknown
	// PinnedRow means that a transaction has the row pinned. The statement was not applied.
	PinnedRow
	// ReadOnly means that the server or the session refuses writes.
	ReadOnly
	// NoTable means that the server does not know the table, or a column of it.
	NoTable
	// OtherLayout means that the table has got the column EXPIRED_AFTER since it was opened, or has lost it, or
	// that it has another layout than the one that was given.
	OtherLayout
	// NoFence means that the server does not know what fencing tokens are drawn from, beside a table
	// without EXPIRED_AFTER, which a Spring before 7 may be using.
	NoFence
	// NoFenceOfFive means the same beside a table with EXPIRED_AFTER, whose columns no migration changes.
	NoFenceOfFive
	// WrongTable means that the table is there, and is not what the protocol needs.
	WrongTable
	// WrongDialect means that the server needs another dialect.
	WrongDialect
	// Unsupported means that sqllock does not support the server.
	Unsupported
	// WrongIsolation means that the server refuses the isolation that acquires.
	WrongIsolation
	// WrongSession means that the session does not commit its statements.
	WrongSession
	// OneRow means that keys of a joint claim are one row.
	OneRow
	// WrongTx means that a transaction of the user's cannot send what a guard must.
	WrongTx
)

// An Error is why a method failed. Its text names no key: only the caller knows the key
// as the user wrote it.
type Error struct {
	Op   string // what was done, as in "acquire"; "" if Err says it all
	Kind Kind
	Err  error

	Silent time.Duration // of kind Ended or NoAnswer: for how long the statement that was sent last had no answer, if that is known
}

// Error implements error.
func (e *Error) Error() string {
	if e.Op == "" {
		return e.Err.Error()
	}
	return e.Op + ": " + e.Err.Error()
}

// Unwrap returns the driver's error, or why the context ended.
func (e *Error) Unwrap() error { return e.Err }

// as returns e as the error of another operation.
func (e *Error) as(op string) *Error {
	other := *e
	other.Op = op
	return &other
}

// Is reports whether err is an [*Error] of that kind.
func Is(err error, kind Kind) bool {
	if err == nil {
		return false // without an allocation
	}
	var e *Error
	return errors.As(err, &e) && e.Kind == kind
}

var (
	// errTimedOut is why a call is given up although its context lasts.
	errTimedOut = errors.New("the database does not answer")
	errNoAnswer = fmt.Errorf("%w: %w", errTimedOut, bounded.ErrNoAnswer) // is that of a driver that was left behind, too
	// errOutcomeUnknown wraps a lost race of an acquisition that may have been applied.
	errOutcomeUnknown = errors.New("it is not known whether the row was written")
)

// A classifier returns the class of an error of one database.
type classifier func(error) dialect.Class

// isRace reports whether err means that the statement lost a race, so that it was not
// applied and may be sent again.
func (c classifier) isRace(err error) bool {
	return c.isOf(err, dialect.Transient) || c.isOf(err, dialect.OldPlan)
}

// isBlocked reports whether err means that a transaction has the row pinned, or that the server allows a
// statement less time than waiting for that takes.
func (c classifier) isBlocked(err error) bool { return c.isOf(err, dialect.Blocked) }

// isRefusal reports whether err means that the statement was not applied.
func (c classifier) isRefusal(err error) bool {
	return c.isRace(err) || c.isBlocked(err) || c.isOf(err, dialect.ReadOnly)
}

// isRefusedCommit reports whether err means that COMMIT was not applied. It waits for no row: one that the
// server has ended for its time limit may have been applied.
func (c classifier) isRefusedCommit(err error) bool { return c.isRefusal(err) && !c.isBlocked(err) }

// isAnswer reports whether err is an answer of the server that says that a statement, which was a
// transaction by itself, was not applied.
func (c classifier) isAnswer(err error) bool {
	return c.isRefusal(err) || c.isOf(err, dialect.Refused) || c.isOf(err, dialect.Repeated) || c.isOf(err, dialect.TooLarge) || c.isOf(err, dialect.Exhausted)
}

func (c classifier) isOf(err error, class dialect.Class) bool {
	return err != nil && !errors.Is(err, errOutcomeUnknown) && c(err) == class
}

// explain makes an *Error of an error that op ended with under ctx. If ctx has ended, that
// explains err better than the driver does, unless the driver had to be left behind.
func (c classifier) explain(ctx context.Context, op string, err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	if errors.Is(err, bounded.ErrNoAnswer) {
		return &Error{Op: op, Kind: NoAnswer, Err: err}
	}
	if cause := bounded.Ended(ctx); cause != nil {
		if c.isRefusal(err) {
			cause = fmt.Errorf("%w: %w", cause, err) // why ctx ended before an answer
		}
		return &Error{Op: op, Kind: Ended, Err: cause}
	}
	return &Error{Op: op, Kind: c.kindOf(err), Err: err}
}

func (c classifier) kindOf(err error) Kind {
	class := c(err)
	switch {
	case errors.Is(err, errTimedOut):
		return NoAnswer
	case errors.Is(err, errOutcomeUnknown) && (class == dialect.Transient || class == dialect.OldPlan || class == dialect.Blocked):
		return OutcomeUnknown
	}
	switch class {
	case dialect.Transient, dialect.OldPlan:
		return Race
	case dialect.Blocked:
		return PinnedRow
	case dialect.ReadOnly:
		return ReadOnly
	case dialect.Schema:
		return NoTable
	case dialect.OtherLayout:
		return OtherLayout
	case dialect.NoKey:
		return WrongTable
	default:
		return Failed
	}
}
