// Package exit has the exit codes of the command, and the errors that carry a code
// or a hint for the user.
package exit

import (
	"errors"
	"fmt"

	"github.com/sqllock/sqllock"
)

// The exit codes. From 64 on they are those of sysexits.h, which scripts know from
// mail systems and other programs rarely use. The subcommand exec also passes on the
// code of its child.
const (
	Failure     = 1  // any error that has no code of its own
	Usage       = 64 // EX_USAGE: bad input; nothing was done
	Database    = 69 // EX_UNAVAILABLE: a database error
	NotAcquired = 75 // EX_TEMPFAIL: the lock was not acquired before the timeout
	LockLost    = 76 // EX_PROTOCOL: the lock was lost while it was needed

	// The codes of shells for commands that do not run.
	CannotRun = 126
	NotFound  = 127
)

// An Error ends the program with a code. If Err is nil, nothing is printed: the
// command has printed all there is to say.
type Error struct {
	Code int
	Err  error
}

// Error implements error.
func (e *Error) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("exit code %d", e.Code)
	}
	return e.Err.Error()
}

// Unwrap returns Err.
func (e *Error) Unwrap() error { return e.Err }

// HasText reports whether there is something to print of an error.
func HasText(err error) bool {
	var exit *Error
	return !errors.As(err, &exit) || exit.Err != nil
}

// Usagef returns an error about bad input, with the code [Usage].
func Usagef(format string, args ...any) error {
	return &Error{Usage, fmt.Errorf(format, args...)}
}

// A hintedError carries a hint, which is printed on a line of its own.
type hintedError struct {
	error
	hint string
}

func (e *hintedError) Unwrap() error { return e.error }

// WithHint adds a hint to an error: what the user can try.
func WithHint(err error, format string, args ...any) error {
	return &hintedError{err, fmt.Sprintf(format, args...)}
}

// Hint returns the hint that an error carries, or "".
func Hint(err error) string {
	var hinted *hintedError
	if errors.As(err, &hinted) {
		return hinted.hint
	}
	return ""
}

// CodeOf returns the exit code for the result of a command.
func CodeOf(err error) int {
	var exit *Error
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit):
		return exit.Code
	case errors.Is(err, sqllock.ErrInvalid):
		return Usage
	case errors.Is(err, sqllock.ErrLockLost):
		return LockLost
	case errors.Is(err, sqllock.ErrNotAcquired):
		return NotAcquired
	case errors.Is(err, sqllock.ErrDatabase):
		return Database
	default:
		return Failure
	}
}
