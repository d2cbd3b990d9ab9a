package cronlock_test

import (
	"context"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock"
	cronlock "github.com/sqllock/sqllock/adapters/cron"
)

// The functions below are the code of README.md. The compiler checks them; the tests run the same
// calls.
var _ = []any{readme, wrapper}

func readme(ctx context.Context, registry *sqllock.Registry, sendReport func(context.Context) error) error {
	c := cron.New()
	_, err := c.AddJob("@every 1m", cronlock.Job(ctx, registry, "report", 30*time.Second, nil, sendReport))
	if err != nil {
		return err
	}
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done() // wait for jobs that run
	return nil
}

func wrapper(ctx context.Context, registry *sqllock.Registry, existing cron.Job) cron.Job {
	once := cronlock.Wrapper(ctx, registry, "report", 30*time.Second, nil)
	return cron.NewChain(once).Then(existing)
}
