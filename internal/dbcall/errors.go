package dbcall

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/sqltext"
)

// A Kind says what an [Error] means to the caller of a method. kindOf makes it of the class that the dialect's Classify
// has found, and package failure makes the sentinel of it that a user sees:
//
//	class                  kind                                                 sentinel
//	Transient, OldPlan     Race; MaybeWritten, if it may have been applied      ErrDatabase
//	Blocked                PinnedRow; MaybeWritten, if it may have been applied ErrPinned; ErrDatabase
//	ReadOnly               ReadOnly                                             ErrReadOnly
//	Schema                 NoTable; NoFence, NoFenceOfFive of package probe     ErrSchema
//	OtherLayout            OtherLayout                                          ErrSchema
//	NoKey                  WrongTable; also the faults of package probe         ErrSchema
//	any other              Failed                                               ErrDatabase
//	–                      NoAnswer                                             ErrDatabase
//	–                      Ended                                                the context's own
//	–                      those after WrongTable                               ErrInvalid
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
	// MaybeWritten means that an acquisition lost a race after it had written its row, or was refused
	// after it had been sent on a connection that was closed. The row is being deleted, maybe late, so
	// the holder must not be used again.
	MaybeWritten
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

	Prefix string // of the tables, if it is known

	Silent time.Duration // of kind Ended or NoAnswer: for how long the statement that was sent last had no answer, if that is known
}

// GuardOp is the Op of the errors of a guard. It is sent in the caller's transaction, so a table that is missing there
// means another database or schema.
const GuardOp = "guard"

// Error implements error.
func (e *Error) Error() string {
	if e.Op == "" {
		return e.Err.Error()
	}
	return e.Op + ": " + e.Err.Error()
}

// Unwrap returns the driver's error, or why the context ended.
func (e *Error) Unwrap() error { return e.Err }

// Of returns e as the error of another operation.
func (e *Error) Of(op string) *Error {
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
	// ErrTimedOut is why a call is given up although its context lasts.
	ErrTimedOut = errors.New("the database does not answer")
	errNoAnswer = fmt.Errorf("%w: %w", ErrTimedOut, bounded.ErrNoAnswer) // is that of a driver that was left behind, too
	// ErrMaybeWritten wraps a lost race of an acquisition that may have been applied.
	ErrMaybeWritten = errors.New("it is not known whether the row was written")
)

// A Server is what a call knows of the server that it goes to.
type Server struct {
	Classify     func(error) sqltext.Class // the dialect's
	Prefix       string                    // of the tables there
	TestPatience time.Duration             // see [WithTestPatience]; 0 otherwise
}

// ServerOf returns what is known of a server with these tables, to calls of a table that is opened with ctx.
func ServerOf(ctx context.Context, d sqltext.Dialect, names sqltext.Names) Server {
	return Server{d.Classify, PrefixOf(names), TestPatience(ctx)}
}

// PrefixOf returns what the names begin with, with the schema if there is one.
func PrefixOf(names sqltext.Names) string { return strings.TrimSuffix(names.Lock, "LOCK") }

// IsRace reports whether err means that the statement lost a race, so that it was not
// applied and may be sent again.
func (s Server) IsRace(err error) bool {
	return s.IsOf(err, sqltext.Transient) || s.IsOf(err, sqltext.OldPlan)
}

// IsBlocked reports whether err means that a transaction has the row pinned, or that the server allows a
// statement less time than waiting for that takes.
func (s Server) IsBlocked(err error) bool { return s.IsOf(err, sqltext.Blocked) }

// IsNotNow reports whether err means that the statement was not applied for a reason that lies in the moment: a lost race,
// a pinned row, or a server that takes no writes. Other statements meet the same, whatever they say.
func (s Server) IsNotNow(err error) bool {
	return s.IsRace(err) || s.IsBlocked(err) || s.IsOf(err, sqltext.ReadOnly)
}

// IsRefusedCommit reports whether err means that COMMIT was not applied. It waits for no row: one that the
// server has ended for its time limit may have been applied.
func (s Server) IsRefusedCommit(err error) bool { return s.IsNotNow(err) && !s.IsBlocked(err) }

// IsUnapplied reports whether err says that a statement that was a transaction by itself was not applied, for whatever
// reason: those of [Server.IsNotNow], and what it says or needs.
func (s Server) IsUnapplied(err error) bool {
	return s.IsNotNow(err) || s.IsOf(err, sqltext.Refused) || s.IsOf(err, sqltext.Repeated) || s.IsOf(err, sqltext.TooLarge) || s.IsOf(err, sqltext.Exhausted)
}

// IsOf reports whether err is of a class, and it is known what the statement has done.
func (s Server) IsOf(err error, class sqltext.Class) bool {
	return err != nil && !errors.Is(err, ErrMaybeWritten) && s.Classify(err) == class
}

// Explain makes an *Error of an error that op ended with under ctx. If ctx has ended, that
// explains err better than the driver does, unless the driver had to be left behind.
func (s Server) Explain(ctx context.Context, op string, err error) error {
	if err == nil || errors.As(err, new(*Error)) {
		return err
	}
	if errors.Is(err, bounded.ErrNoAnswer) {
		return &Error{Op: op, Kind: NoAnswer, Err: err}
	}
	if cause := bounded.Ended(ctx); cause != nil {
		if s.IsNotNow(err) {
			cause = fmt.Errorf("%w: %w", cause, err) // why ctx ended before an answer
		}
		return &Error{Op: op, Kind: Ended, Err: cause}
	}
	return &Error{Op: op, Kind: s.kindOf(err), Err: err, Prefix: s.Prefix}
}

func (s Server) kindOf(err error) Kind {
	class := s.Classify(err)
	switch {
	case errors.Is(err, ErrTimedOut):
		return NoAnswer
	case errors.Is(err, ErrMaybeWritten) && (class == sqltext.Transient || class == sqltext.OldPlan || class == sqltext.Blocked):
		return MaybeWritten
	}
	switch class {
	case sqltext.Transient, sqltext.OldPlan:
		return Race
	case sqltext.Blocked:
		return PinnedRow
	case sqltext.ReadOnly:
		return ReadOnly
	case sqltext.Schema:
		return NoTable
	case sqltext.OtherLayout:
		return OtherLayout
	case sqltext.NoKey:
		return WrongTable
	default:
		return Failed
	}
}

// MigrateUp is the command that creates the tables of a prefix, or what is missing of them.
func MigrateUp(prefix string) string { return migrate("up", prefix) }

// MigrateGoto is the command that brings the tables of a prefix to a version.
func MigrateGoto(version int, prefix string) string {
	return migrate(fmt.Sprintf("goto %d", version), prefix)
}

func migrate(command, prefix string) string {
	if prefix == "" || prefix == dialect.DefaultPrefix {
		return "sqllock migrate " + command
	}
	return "sqllock migrate " + command + " --prefix " + prefix
}
