package asynqlock

import (
	"context"

	"github.com/sqllock/sqllock"
)

// A Scheduler is an [asynq.Scheduler] or an [asynq.PeriodicTaskManager].
type Scheduler interface {
	Start() error
	Shutdown()
}

// Lead returns a function for [github.com/sqllock/sqllock/sync/leader.Elector.Run]: it runs a scheduler for
// as long as this instance leads, so that each task is enqueued by one instance.
//
//	err := elector.Run(ctx, asynqlock.Lead(newScheduler))
//
// newScheduler is called once a term, because asynq's schedulers cannot be started twice. It must
// return a new one each time, with all entries registered. If it fails, or the scheduler does not
// start, Elector.Run returns the error.
//
// When the term ends the scheduler is shut down, which waits for a task that it is enqueueing. After
// a loss of the lease, two schedulers may therefore enqueue the same task once. So may two leaders
// in turn whose clocks differ. Where that matters, enqueue with [asynq.Unique] as well.
func Lead(newScheduler func() (Scheduler, error)) func(context.Context, *sqllock.Lease) error {
	return func(ctx context.Context, _ *sqllock.Lease) error {
		scheduler, err := newScheduler()
		if err != nil {
			return err
		}
		if err := scheduler.Start(); err != nil {
			return err
		}
		defer scheduler.Shutdown()
		<-ctx.Done()
		return ctx.Err()
	}
}
