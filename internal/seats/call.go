package seats

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/failure"
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

// beganKey is the key of when a wait has begun, in the context of the wait.
type beganKey struct{}

// Limited returns the context of a call's wait, which begins now and is made from ctx, the caller's. A wait
// that is not positive does not limit it.
func Limited(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(ctx, beganKey{}, time.Now())
	if wait <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, wait)
}

// began returns when the wait has begun whose context is waiting, or made from it.
func began(waiting context.Context) time.Time {
	at, _ := waiting.Value(beganKey{}).(time.Time)
	return at
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
	defer func() { result = failure.Join(result, lease.Unlock(ctx)) }()
	return fn(lease.Context()) //nolint:contextcheck // it is made from ctx
}
