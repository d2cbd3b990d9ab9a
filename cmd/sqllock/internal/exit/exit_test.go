package exit

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/sqllock/sqllock"
)

func TestCodeOf(t *testing.T) {
	held := &sqllock.HeldError{Key: "k"}
	for _, test := range []struct {
		err  error
		want int
	}{
		{nil, 0},
		{errors.New("x"), Failure},
		{context.Canceled, Failure},
		{fmt.Errorf("x: %w", sqllock.ErrInvalid), Usage},
		{Usagef("x"), Usage},
		{WithHint(Usagef("x"), "y"), Usage},
		{fmt.Errorf("x: %w", sqllock.ErrSchema), Database},
		{held, NotAcquired},
		{errors.Join(sqllock.ErrLockLost, sqllock.ErrDatabase), LockLost},
		{&Error{Code: 3}, 3},
	} {
		if got := CodeOf(test.err); got != test.want {
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
		{"no text", "a hint", "", &Error{Code: 3}},
		{"no text, and an error", "", "sqllock: the tables are left\n", errors.Join(errors.Join(&Error{Code: 3}, nil), errors.New("the tables are left"))},
		{"no text, joined", "a hint", "", errors.Join(&Error{Code: 3}, &Error{Code: 3})},
		{"the name in front", "", "sqllock: lock cache is full\n", sqllock.ErrCapacity},
		{"several lines", "", "sqllock: " + Text(sqllock.ErrDatabase) + ": renew \"k\": first line; second line\n", lost},
		{"several errors", "", "sqllock: registry is closed; lock cache is full\n", errors.Join(sqllock.ErrClosed, sqllock.ErrCapacity)},
		{"a hint", "a hint", "sqllock: x\ntry: a hint\n", errors.New("x")},
		{"a hint of its own", "a hint", "sqllock: x\ntry: y\n", fmt.Errorf("%w", WithHint(errors.New("x"), "y"))},
	} {
		var out strings.Builder
		Report(&out, test.err, test.hint)
		if out.String() != test.want {
			t.Errorf("%s: %q, want %q", test.name, out.String(), test.want)
		}
	}
}
