// Package cronlock runs the jobs of github.com/robfig/cron/v3 on one instance of an application at
// a time, and at most once in a period over all instances.
//
//	report := cronlock.Job(ctx, registry, "report", 30*time.Second, nil, sendReport)
//	c := cron.New()
//	if _, err := c.AddJob("@every 1m", report); err != nil {
//		return err
//	}
//	c.Start()
//
// It is package job with what cron asks for: a job that has no context, returns nothing, and logs.
package cronlock

import (
	"context"
	"errors"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sync/job"
)

// Job returns a cron job that runs fn under the lock of key, if no other instance does. Otherwise
// this run is skipped. key, minHold, opts and the context of fn are those of [job.New]: all instances must
// use the same key, and minHold must be longer than their clocks differ, and shorter than the time
// between two runs.
//
// ctx is what cron does not have: it limits each run, and carries values to fn. When it has ended,
// nothing runs any more. To stop, end ctx and then wait for the context that [cron.Cron.Stop]
// returns.
//
// A skipped run is logged with logger.Info, and each other error of [job.New]'s function with
// logger.Error, among them fn's own, and [sqllock.ErrLockLost] if the lease was lost while fn ran.
// An [sqllock.ErrNotAcquired] that fn returns, of a lock of its own, is an error of fn's.
// If logger is nil it is [cron.DefaultLogger], which prints errors alone. A panic goes on, to
// [cron.Recover] if that is in the chain.
func Job(ctx context.Context, registry *sqllock.Registry, key string, minHold time.Duration, logger cron.Logger, fn func(context.Context) error, opts ...job.Option) cron.Job {
	if logger == nil {
		logger = cron.DefaultLogger
	}
	run := fn
	if fn != nil { // otherwise job.New has the error
		run = func(ctx context.Context) error {
			*ctx.Value(ranKey{}).(*bool) = true
			return fn(ctx)
		}
	}
	work := job.New(registry, key, minHold, run, opts...) // once: it remembers the skipped runs that are not counted yet
	return cron.FuncJob(func() {
		var ran bool
		switch err := work(context.WithValue(ctx, ranKey{}, &ran)); {
		case err == nil:
		case !ran && errors.Is(err, sqllock.ErrNotAcquired):
			logger.Info("skip", "key", key, "reason", err)
		default:
			logger.Error(err, "job failed", "key", key)
		}
	})
}

// ranKey is the key of what is set, in the context of a run, when fn is called.
type ranKey struct{}

// Wrapper returns a wrapper that makes [Job] of a cron job that exists. Such a job gets no context,
// so it does not notice that its lock is lost and goes on, beside that of another instance. The
// loss is logged afterwards. Prefer Job.
//
// Give each job a chain of its own, cron.NewChain(wrapper).Then(job). In [cron.WithChain] the
// wrapper would give all jobs one key, and they would exclude each other.
func Wrapper(ctx context.Context, registry *sqllock.Registry, key string, minHold time.Duration, logger cron.Logger) cron.JobWrapper {
	return func(wrapped cron.Job) cron.Job {
		return Job(ctx, registry, key, minHold, logger, func(context.Context) error {
			wrapped.Run()
			return nil
		})
	}
}
