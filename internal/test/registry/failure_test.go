package registry_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/failure"
	"github.com/sqllock/sqllock/internal/test/check"
)

var sentinels = []error{
	failure.ErrNotAcquired, failure.ErrLockLost, failure.ErrDatabase, failure.ErrSchema, failure.ErrReadOnly, failure.ErrPinned, failure.ErrInvalid,
	failure.ErrNotHeld, failure.ErrCapacity, failure.ErrClosed,
}

// An error that is made one of a kind, whatever it was before, names each kind once at most, and loses nothing.
func TestAKindIsNamedOnce(t *testing.T) {
	t.Parallel()
	cause := errors.New("the disk is full")
	ofTable := func(kind dbcall.Kind) error {
		return failure.Of(&dbcall.Error{Op: "acquire", Kind: kind, Err: cause}, "k")
	}
	before := []error{
		cause, ofTable(dbcall.Failed), ofTable(dbcall.NoAnswer), ofTable(dbcall.ReadOnly), ofTable(dbcall.NoTable), ofTable(dbcall.PinnedRow),
		failure.AsDatabase(ofTable(dbcall.Ended)), failure.Of(ofTable(dbcall.Failed), "again"), failure.Invalid("%w", cause),
		fmt.Errorf("step: %w", ofTable(dbcall.Failed)), fmt.Errorf("%w (for %v)", ofTable(dbcall.Failed), 3), failure.WithCure(ofTable(dbcall.Failed)),
	}
	for _, kind := range sentinels {
		before = append(before, fmt.Errorf("%w: %w", kind, cause), failure.As(kind, "read", cause))
	}
	for _, kind := range sentinels {
		for _, err := range before {
			for _, twice := range []error{failure.As(kind, "close", err), failure.Of(failure.As(kind, "close", err), "k"), failure.As(kind, "", failure.As(kind, "close", err))} {
				check.Is(t, twice, kind, err)
				for _, other := range sentinels {
					if n := strings.Count(twice.Error(), other.Error()+": "); n > 1 {
						t.Errorf("%v as %v: %q is there %d times", err, kind, other, n)
					}
				}
				check.Contains(t, twice.Error(), "close", cause.Error())
			}
		}
	}
}

// So it is with the cause of a context that has ended, which stands in the text without sqllock's name.
func TestAKindIsNamedOnce_InTheCauseOfAContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(failure.As(failure.ErrDatabase, "", errors.New("no answer for 10s")))
	err := failure.As(failure.ErrDatabase, "open", bounded.Ended(ctx))
	check.Is(t, err, failure.ErrDatabase, context.Canceled)
	check.Equal(t, "text", err.Error(), "sqllock: database error: open: context canceled: no answer for 10s")
}

// The kind in the text is the narrowest that fits.
func TestTheNarrowestKindIsNamed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err  error
		text string
	}{
		{failure.As(failure.ErrDatabase, "create the tables", failure.As(failure.ErrSchema, "", errors.New("no"))), "sqllock: no usable lock table: create the tables: no"},
		{failure.As(failure.ErrDatabase, "", failure.Of(&dbcall.Error{Op: "keep", Kind: dbcall.NoAnswer, Err: bounded.ErrNoAnswer}, "k")), `sqllock: database error: keep "k": no answer`},
		{failure.As(failure.ErrReadOnly, "", failure.ErrReadOnly), "sqllock: database is read-only"},
		{failure.Invalid("turn: %w", failure.Invalid("x")), "sqllock: invalid argument: turn: x"},
	} {
		check.Equal(t, "text", test.err.Error(), test.text)
	}
}

// What was translated before is not taken for several errors that are joined.
func TestATranslationIsFinal(t *testing.T) {
	t.Parallel()
	once := failure.Of(&dbcall.Error{Op: "read", Kind: dbcall.Failed, Err: errors.New("no")}, "k")
	check.Equal(t, "text", failure.Of(once, "other").Error(), once.Error())
}

// A guard that finds no table runs in another database: the registry has read the table before.
func TestAGuardWithoutATableIsInAnotherDatabase(t *testing.T) {
	t.Parallel()
	for op, cure := range map[string]string{"acquire": "run `sqllock migrate up`", dbcall.GuardOp: "the transaction must be in the database and the schema of the lock"} {
		err := failure.Of(&dbcall.Error{Op: op, Kind: dbcall.NoTable, Err: errors.New("no such table")}, "k")
		check.Is(t, err, failure.ErrSchema)
		check.Contains(t, err.Error(), `"k": no such table (`+cure)
	}
}

// The advice is the command for the tables of the user, which need not have the default's prefix.
func TestTheCureHasThePrefix(t *testing.T) {
	t.Parallel()
	for _, prefix := range []string{"", "INT_", "billing.INT_"} {
		command := "`sqllock migrate up"
		if prefix == "billing.INT_" {
			command += " --prefix billing.INT_"
		}
		for kind, end := range map[dbcall.Kind]string{dbcall.NoTable: "`", dbcall.NoFenceOfFive: "`", dbcall.NoFence: " --layout spring6`"} {
			err := failure.Of(&dbcall.Error{Kind: kind, Err: errors.New("no such table"), Prefix: prefix}, "")
			check.Contains(t, err.Error(), "(run "+command+end+", or see docs/schema.md)")
		}
	}
}

// answer is an error of PostgreSQL.
type answer string

func (a answer) Error() string    { return "refused" }
func (a answer) SQLState() string { return string(a) }

func TestCureOf(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err   error
		cause string
	}{
		{answer("22023"), "the server refuses the value of a parameter of the DSN"},
		{fmt.Errorf(`too many connections for role "app": %w`, answer("53300")), "the server has no connection left"},
		{errors.New(`FATAL: role "app" does not exist (SQLSTATE 22023)`), "the server has no such role as the DSN asks for"},
		{errors.New("Error 1231 (42000): Variable 'sql_mode' can't be set to the value of 'nonsense'"), "the server refuses the value of a parameter of the DSN"},
		{errors.New("Error 1232 (42000): Incorrect argument type to variable 'wait_timeout'"), "the server refuses the value of a parameter of the DSN"},
		{errors.New("unable to open database file: out of memory (14)"), "the file of the database cannot be opened"},
	} {
		if cure := failure.CureOf(test.err); cure == nil || cure.Cause != test.cause {
			t.Errorf("%v: %+v", test.err, cure)
		}
	}
}

// A parameter that the server refuses is named.
func TestCureOf_NamesTheParameter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"Error 1231 (42000): Variable 'sql_mode' can't be set to the value of 'nonsense'": `of the DSN, "sql_mode": correct the value`,
		"Error 1193 (HY000): Unknown system variable 'nonsense'":                          `of the DSN, "nonsense": correct its name`,
	} {
		check.Contains(t, failure.WithCure(errors.New(text)).Error(), want)
	}
}

// TestOneRefusalIsEnough leaves out that the server has no TLS, if the connection without TLS was refused too.
func TestOneRefusalIsEnough(t *testing.T) {
	t.Parallel()
	const first, last = "failed to connect to `user=u database=d`:", "\n\t127.0.0.1:5432 (localhost): failed SASL auth: FATAL: password authentication failed"
	const noTLS = "\n\t127.0.0.1:5432 (localhost): tls error: server refused TLS connection"
	for text, want := range map[string]string{first + noTLS + last: first + last, first + noTLS: first + noTLS} {
		_, driver, _ := strings.Cut(failure.WithCure(errors.New(text)).Error(), "\n")
		check.Equal(t, "the driver's text", driver, want)
	}
	const other = "\n\t127.0.0.1:5432 (localhost): server error: FATAL: invalid value for parameter"
	if cure := failure.CureOf(errors.New(first + noTLS + other)); cure != nil {
		t.Errorf("another refusal has the cure %+v", cure)
	}
}
