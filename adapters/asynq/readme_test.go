package asynqlock_test

import (
	"context"

	"github.com/hibiken/asynq"

	"github.com/sqllock/sqllock"
	asynqlock "github.com/sqllock/sqllock/adapters/asynq"
	"github.com/sqllock/sqllock/sync/leader"
)

// The functions below are the code of README.md. The compiler checks them; the tests run the same
// calls.
var _ = []any{process, schedule}

func process(registry *sqllock.Registry, redis asynq.RedisConnOpt, mux *asynq.ServeMux) error {
	mux.Use(asynqlock.Middleware(registry, func(task *asynq.Task) string { return "import/" + string(task.Payload()) }, nil))
	server := asynq.NewServer(redis, asynq.Config{IsFailure: asynqlock.IsFailure, RetryDelayFunc: asynqlock.RetryDelay})
	return server.Run(mux)
}

func schedule(ctx context.Context, registry *sqllock.Registry, redis asynq.RedisConnOpt) error {
	elector, err := leader.New(registry, "scheduler", nil)
	if err != nil {
		return err
	}
	return elector.Run(ctx, asynqlock.Lead(func() (asynqlock.Scheduler, error) {
		scheduler := asynq.NewScheduler(redis, nil)
		_, err := scheduler.Register("0 3 * * *", asynq.NewTask("nightly", nil))
		return scheduler, err
	}))
}
