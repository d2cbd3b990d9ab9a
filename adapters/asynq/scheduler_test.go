package asynqlock_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	asynqlock "github.com/sqllock/sqllock/adapters/asynq"
	"github.com/sqllock/sqllock/sqllocktest"
	"github.com/sqllock/sqllock/sync/leader"
)

// scheduler returns a scheduler that enqueues a task each minute.
func (r inMemory) scheduler() (asynqlock.Scheduler, error) {
	scheduler := asynq.NewScheduler(r, &asynq.SchedulerOpts{LogLevel: asynq.FatalLevel})
	_, err := scheduler.Register("* * * * *", asynq.NewTask("import", nil))
	return scheduler, err
}

// TestOneInstanceSchedules has two instances, and the leader changes three times: each minute has one
// task.
func TestOneInstanceSchedules(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, db := newRedis(t), sqllocktest.New(t, seldom)
		time.Sleep(10 * time.Second) // so that nothing happens at a full minute but the task
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 2)
		var electors []*leader.Elector
		for range 2 {
			elector, err := leader.New(db.Another(), "scheduler", nil)
			must(t, err)
			electors = append(electors, elector)
			go func() { ended <- elector.Run(ctx, asynqlock.Lead(r.scheduler)) }()
			time.Sleep(time.Second) // the first leads
		}
		for term := range 4 { // each leads twice
			time.Sleep(5*time.Minute - 20*time.Second)
			must(t, electors[term%2].Resign(t.Context()))
			time.Sleep(20 * time.Second) // the other leads
		}
		cancel()
		is(t, <-ended, context.Canceled)
		is(t, <-ended, context.Canceled)
		inspector := asynq.NewInspector(r)
		defer inspector.Close()
		info, err := inspector.GetQueueInfo("default")
		must(t, err)
		if info.Pending != 20 {
			t.Errorf("%d tasks in 20 minutes", info.Pending)
		}
	})
}

// TestASchedulerIsNotStartedTwice has newScheduler return the same one in the second term.
func TestASchedulerIsNotStartedTwice(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, db := newRedis(t), sqllocktest.New(t, nil)
		scheduler, err := r.scheduler()
		must(t, err)
		elector, err := leader.New(db.Registry, "scheduler", nil)
		must(t, err)
		ended := make(chan error, 1)
		go func() {
			ended <- elector.Run(t.Context(), asynqlock.Lead(func() (asynqlock.Scheduler, error) { return scheduler, nil }))
		}()
		time.Sleep(time.Second)
		must(t, elector.Resign(t.Context()))
		if err := <-ended; err == nil || !strings.Contains(err.Error(), "already been stopped") {
			t.Error(err)
		}
	})
}
