package seats

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
)

// How long a call waits, if not for so long.
const (
	NotAtAll time.Duration = 0
	Forever  time.Duration = -1
)

// CheckWait returns [sqllock.ErrInvalid] if a caller asks for a negative wait.
func (s *Set) CheckWait(wait time.Duration) error {
	if wait < 0 {
		return Invalid("wait %v for %q is negative", wait, s.key)
	}
	return nil
}

// Limited returns the context of a call's wait, which is made from ctx, the caller's. A wait that is
// not positive does not limit it.
func Limited(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	if wait <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, wait)
}

// Execute runs fn under the lease that acquire returns, and unlocks it when fn returns or panics. The
// errors of fn and of the release are joined.
func Execute(ctx context.Context, acquire func() (*sqllock.Lease, error), fn func(context.Context) error) (result error) {
	if fn == nil {
		return Invalid("there is no function to run")
	}
	lease, err := acquire()
	if err != nil {
		return err
	}
	defer func() { result = errors.Join(result, lease.Unlock(ctx)) }()
	return fn(lease.Context()) //nolint:contextcheck // it is made from ctx
}
