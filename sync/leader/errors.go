package leader

import (
	"errors"
	"fmt"

	"github.com/sqllock/sqllock/internal/failure"
)

// The errors of this package, to be found with errors.Is. Bad input is a [sqllock.ErrInvalid].
var (
	// ErrNotLeader is returned by [Elector.IsLeader] and [Elector.Resign] if the elector does not lead. The error is
	// a [*NotLeaderError].
	ErrNotLeader = errors.New("sqllock: not the leader")

	// ErrResigned is the cause with which the context of a term ends after [Elector.Resign].
	ErrResigned = errors.New("sqllock: the leader has resigned")

	// ErrStuck is returned by [Elector.Check] if the function still runs although its lease has ended.
	ErrStuck = errors.New("sqllock: the leader has lost its lease and has not stopped")
)

// A NotLeaderError says who leads instead. errors.Is finds [ErrNotLeader] in it.
type NotLeaderError struct {
	// Role is the role.
	Role string
	// Leader is the leader as the elector saw it last, or zero if it has seen none.
	Leader Leader
}

// Error implements error.
func (e *NotLeaderError) Error() string {
	if e.Leader.Holder == "" {
		return fmt.Sprintf("%v: %q", ErrNotLeader, e.Role)
	}
	return fmt.Sprintf("%v: %s leads %q", ErrNotLeader, e.Leader.Client, e.Role)
}

// Unwrap returns ErrNotLeader.
func (e *NotLeaderError) Unwrap() error { return ErrNotLeader }

// invalid makes an ErrInvalid.
func invalid(format string, args ...any) error {
	return failure.Invalid(format, args...)
}

// joined joins errors; a single one stays what it is.
func joined(first error, others ...error) error {
	for _, err := range others {
		if err != nil {
			return errors.Join(append([]error{first}, others...)...)
		}
	}
	return first
}
