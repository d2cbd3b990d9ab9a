package tests_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/gocronlock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sqllocktest"
	"github.com/sqllock/sqllock/sync/job"
)

// schedule starts a scheduler with one task, every minute. It is shut down with the test.
func schedule(t *testing.T, task any, scheduling []gocron.SchedulerOption, job ...gocron.JobOption) {
	t.Helper()
	scheduler := check.Value(gocron.NewScheduler(scheduling...))(t)
	must(t, check.ErrorOf(scheduler.NewJob(gocron.DurationJob(time.Minute), gocron.NewTask(task), job...)))
	scheduler.Start()
	t.Cleanup(func() { must(t, scheduler.Shutdown()) })
}

// TestGocronRunsAJobOnceInAPeriod has three instances, whose tickers are seconds apart: with a task that locks by itself,
// which must get the context of its lease, which gocron does not know; and with a locker.
func TestGocronRunsAJobOnceInAPeriod(t *testing.T) {
	t.Parallel()
	var runs, skipped [2]atomic.Int32
	for i, start := range []func(*testing.T, *sqllock.Registry){
		func(t *testing.T, registry *sqllock.Registry) {
			t.Helper()
			schedule(t, job.New(registry, "report", 30*time.Second, func(ctx context.Context) error {
				runs[0].Add(1)
				_, err := registry.LeaseFrom(ctx, "report")
				is(t, err, nil)
				return err
			}), nil)
		},
		func(t *testing.T, registry *sqllock.Registry) {
			t.Helper()
			locker := gocronlock.New[gocron.Lock](registry, &gocronlock.Options{MinHold: 30 * time.Second})
			schedule(t, func() { runs[1].Add(1) }, []gocron.SchedulerOption{gocron.WithDistributedLocker(locker)},
				gocron.WithName("report"),
				gocron.WithEventListeners(gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) {
					is(t, err, sqllock.ErrNotAcquired)
					skipped[1].Add(1)
				})))
		},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := sqllocktest.New(t, nil)
			for range 3 {
				start(t, r.Another())
				time.Sleep(3 * time.Second)
			}
			time.Sleep(10 * time.Minute)
			if n, refused := runs[i].Load(), skipped[i].Load(); n != 10 || int(refused) != 20*i {
				t.Errorf("%d runs and %d skipped in 10 minutes", n, refused)
			}
		})
	}
}

// TestGocronReportsALoss loses the lock while gocron runs the task, whose context lasts.
func TestGocronReportsALoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		unlocked := make(chan error, 1)
		locker := gocronlock.New[gocron.Lock](r.Registry, &gocronlock.Options{OnUnlock: func(name string, err error) {
			if name == "report" {
				unlocked <- err
			}
		}})
		schedule(t, func(ctx context.Context) error {
			r.Lose("report")
			if ctx.Err() != nil {
				t.Error("gocron's context knows of the lock: say so in the documents")
			}
			return nil
		}, []gocron.SchedulerOption{gocron.WithDistributedLocker(locker)}, gocron.WithName("report"))
		is(t, <-unlocked, sqllock.ErrLockLost)
	})
}
