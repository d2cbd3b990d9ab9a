package exit

import (
	"context"
	"errors"
	"fmt"
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
