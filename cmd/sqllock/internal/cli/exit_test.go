package cli

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
	"github.com/sqllock/sqllock/internal/failure"
)

func TestCodeOf(t *testing.T) {
	held := &sqllock.HeldError{Key: "k"}
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), exit.Failure},
		{context.Canceled, exit.Failure},
		{fmt.Errorf("x: %w", sqllock.ErrInvalid), exit.Usage},
		{exit.Usagef("x"), exit.Usage},
		{exit.WithHint(exit.Usagef("x"), "y"), exit.Usage},
		{fmt.Errorf("x: %w", sqllock.ErrSchema), exit.Database},
		{held, exit.NotAcquired},
		{errors.Join(sqllock.ErrLockLost, sqllock.ErrDatabase), exit.LockLost},
		{&exit.Error{Code: 3}, 3},
	} {
		if got := exit.CodeOf(test.err); got != test.want {
			t.Errorf("CodeOf(%v) = %d, want %d", test.err, got, test.want)
		}
	}
}

func TestReport(t *testing.T) {
	lost := fmt.Errorf("%w: renew \"k\": %w", sqllock.ErrDatabase, errors.New("first line\nsecond line"))
	for _, test := range []struct {
		name, hint, want string
		err              error
	}{
		{"no text", "a hint", "", &exit.Error{Code: 3}},
		{"no text, and an error", "", "sqllock: the tables are left\n", errors.Join(errors.Join(&exit.Error{Code: 3}, nil), errors.New("the tables are left"))},
		{"no text, joined", "a hint", "", errors.Join(&exit.Error{Code: 3}, &exit.Error{Code: 3})},
		{"the name in front", "", "sqllock: lock cache is full\n", sqllock.ErrCapacity},
		{"several lines", "", "sqllock: " + exit.Text(sqllock.ErrDatabase) + ": renew \"k\": first line; second line\n", lost},
		{"several errors", "", "sqllock: registry is closed; lock cache is full\n", errors.Join(sqllock.ErrClosed, sqllock.ErrCapacity)},
		{"a hint", "a hint", "sqllock: x\ntry: a hint\n", errors.New("x")},
		{"a hint of its own", "a hint", "sqllock: x\ntry: y\n", fmt.Errorf("%w", exit.WithHint(errors.New("x"), "y"))},
		{
			"a hint of its own in place of a cure", "", "sqllock: the file of the database cannot be opened\ntry: y\ndriver: unable to open database file (14)\n",
			exit.WithHint(failure.WithCure(errors.New("unable to open database file (14)")), "y"),
		},
	} {
		var out strings.Builder
		exit.Report(&out, test.err, test.hint)
		if out.String() != test.want {
			t.Errorf("%s: %q, want %q", test.name, out.String(), test.want)
		}
	}
}
