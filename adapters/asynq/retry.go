package asynqlock

import (
	"errors"
	"time"

	"github.com/hibiken/asynq"

	"github.com/sqllock/sqllock"
)

// notProcessedError is the error of a task that did not get its lock. It is distinct from an error that
// the task itself has returned, which may be about a lock of its own.
type notProcessedError struct{ err error }

func (e *notProcessedError) Error() string { return e.err.Error() }
func (e *notProcessedError) Unwrap() error { return e.err }

// IsFailure reports whether err is an error of the task itself. It is false if [Middleware] has not
// processed the task, because its lock is held or the database failed, and for nil. It is for
// [asynq.Config].IsFailure: such a task then keeps its retries, and is not counted as failed.
func IsFailure(err error) bool {
	var not *notProcessedError
	return err != nil && !errors.As(err, &not)
}

// minDelay is how long a task is put off at least. The row of a holder that renews its lease often
// has less than a moment left.
const minDelay = time.Second

// RetryDelay is for [asynq.Config].RetryDelayFunc. A task whose lock is held is put off for as long
// as the row of the holder still lasts, at least a second. The lock may be free earlier, or be
// renewed. For all other errors it is [asynq.DefaultRetryDelayFunc].
func RetryDelay(retried int, err error, task *asynq.Task) time.Duration {
	if IsFailure(err) || !errors.Is(err, sqllock.ErrNotAcquired) {
		return asynq.DefaultRetryDelayFunc(retried, err, task)
	}
	var held *sqllock.HeldError
	if !errors.As(err, &held) {
		return minDelay
	}
	return max(held.Left, minDelay)
}
