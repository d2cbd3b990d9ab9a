package seats

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/failure"
)

// NotAcquired returns the [*sqllock.HeldError] of a call that found row held, with the key of the
// lock. If ctx, the caller's, has ended, the error wraps its error and its cause too.
func (s *Set) NotAcquired(ctx context.Context, row sqllock.Row) error {
	return s.notAcquired(ctx, row, 0)
}

// notAcquired is NotAcquired of a call that has waited.
func (s *Set) notAcquired(ctx context.Context, row sqllock.Row, waited time.Duration) error {
	if row.Holder != "" {
		s.seen.Store(&row.Holder)
	}
	held := &sqllock.HeldError{Key: s.key, Holder: row.Holder, Left: max(row.Left, 0), Process: row.Process, Waited: waited}
	if ended := bounded.Ended(ctx); ended != nil {
		return fmt.Errorf("%w: %w", held, ended)
	}
	return held
}

// Failed returns the error of a call of ctx whose attempt, or wait, has failed with err. It is a
// NotAcquired if err is one, about whichever row, or if waiting has ended, which is made from ctx, and the last answer of the
// database was no error. Any other error is returned as it is.
func (s *Set) Failed(ctx, waiting context.Context, err error) error {
	var held *sqllock.HeldError
	silent, outage := failure.SilenceOf(err), failure.Outage(err, s.key)
	switch {
	case errors.Is(err, sqllock.ErrClosed) && s.CheckOpen() != nil: // else ctx is that of a lease of another registry
		return err
	case errors.As(err, &held):
		return s.notAcquired(ctx, sqllock.Row{Holder: held.Holder, Left: held.Left, Process: held.Process}, spanOf(waiting).waited())
	case bounded.Ended(waiting) == nil:
		return err
	case outage != nil:
		return failure.CutShort(ctx, outage)
	case !errors.Is(bounded.Ended(waiting), context.DeadlineExceeded): // its caller has ended it
	case !failure.IsSilence(silent, time.Since(spanOf(waiting).began)):
	case errors.Is(err, sqllock.ErrDatabase) || s.locks.IsSilent(waiting, s.lockKey):
		return failure.CutShort(ctx, failure.Silent(s.key, silent))
	}
	return s.notAcquired(ctx, sqllock.Row{}, spanOf(waiting).waited())
}

// errTooLate is why the lease has ended of a call that has then been doing something else.
var errTooLate = errors.New("the database took longer to answer than the lease lasts")

// GoesOn reports whether a call that waits goes on after a try that has failed with err.
func GoesOn(waiting context.Context, err error) bool {
	return (isHeld(err) || errors.Is(err, errTooLate)) && waiting.Err() == nil
}

// Alive returns lease if it lasts. Otherwise it releases the lease, and returns why the call of ctx has
// failed: the lease has ended while the call did something else.
func (s *Set) Alive(ctx, waiting context.Context, lease *sqllock.Lease) (*sqllock.Lease, error) {
	if lease.Context().Err() == nil {
		return lease, nil
	}
	cause := context.Cause(lease.Context()) //nolint:contextcheck // it is made from ctx
	Release(waiting, lease)
	switch {
	case bounded.Ended(ctx) != nil: // also if ctx is that of another lease, which is lost
		return nil, s.NotAcquired(ctx, sqllock.Row{})
	case errors.Is(cause, sqllock.ErrClosed):
		return nil, cause
	case errors.Is(cause, sqllock.ErrLockLost):
		return nil, fmt.Errorf("%w: %q: %w", sqllock.ErrDatabase, s.key, errTooLate)
	default:
		return nil, s.NotAcquired(ctx, sqllock.Row{})
	}
}
