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

// A span is when a call has begun, and whether it waits, in the context of its wait.
type span struct {
	began time.Time
	waits bool
}

type spanKey struct{}

// Limited returns the context of a call's wait, which begins now and is made from ctx, the caller's. A wait
// that is not positive does not limit it.
func Limited(ctx context.Context, wait time.Duration) (context.Context, context.CancelFunc) {
	ctx = context.WithValue(ctx, spanKey{}, span{time.Now(), wait != NotAtAll})
	if wait <= 0 {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, wait)
}

// spanOf returns the span of the call whose wait has the context waiting, or one made from it.
func spanOf(waiting context.Context) span {
	s, _ := waiting.Value(spanKey{}).(span)
	return s
}

// waited returns for how long a call has waited: 0 if it only tries.
func (s span) waited() time.Duration {
	if !s.waits {
		return 0
	}
	return time.Since(s.began)
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
