// Package jobs tells observers what becomes of jobs: the scheduler that has called them may drop the error.
package jobs

import (
	"context"
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/observe"
)

// Report tells the observers of a registry, which may be nil, what has become of a call of a job, after a minimum hold
// for which the lock stays taken: as a Refusal if e.Err is an [sqllock.ErrInvalid] and the job has not begun. It fills in the
// outcome, unless that is set.
func Report(ctx context.Context, registry *sqllock.Registry, e observe.JobRun, minHold time.Duration) {
	if registry == nil {
		return
	}
	began := !e.Began.IsZero()
	if !began && errors.Is(e.Err, sqllock.ErrInvalid) {
		for _, o := range registry.Observers() {
			if o.Refusal != nil {
				o.Refusal(ctx, observe.Refusal{Key: e.Job, Err: e.Err})
			}
		}
		return
	}
	e.Next = next(e, minHold)
	var held *sqllock.HeldError
	switch {
	case e.Outcome != "":
	case began:
		e.Outcome = observe.JobRan
	case errors.As(e.Err, &held) && ctx.Err() == nil:
		e.Outcome = observe.JobSkipped
	default:
		e.Outcome = observe.JobError
	}
	for _, o := range registry.Observers() {
		if o.JobRun != nil {
			o.JobRun(ctx, e)
		}
	}
}

// next returns when a run can begin at the earliest, or zero.
func next(e observe.JobRun, minHold time.Duration) time.Time {
	now, held := time.Now(), (*sqllock.HeldError)(nil)
	switch {
	case e.Began.IsZero() && errors.As(e.Err, &held) && held.Left > 0:
		return now.Add(held.Left)
	case e.Began.IsZero(), errors.Is(e.Err, sqllock.ErrLockLost), !e.Began.Add(minHold).After(now):
		return time.Time{}
	default:
		return e.Began.Add(minHold)
	}
}
