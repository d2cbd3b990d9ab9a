package asynqlock_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/hibiken/asynq"

	"github.com/sqllock/sqllock"
	asynqlock "github.com/sqllock/sqllock/adapters/asynq"
	"github.com/sqllock/sqllock/sqllocktest"
)

// TestTasksOfAKeyAreProcessedOneAtATime has three servers process tasks that take longer than the
// time-to-live. Tasks without a key are processed at once.
func TestTasksOfAKeyAreProcessedOneAtATime(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, db := newRedis(t), sqllocktest.New(t, nil)
		var mu sync.Mutex
		running, most, processed := map[string]int{}, map[string]int{}, 0
		for range 3 {
			r.serve(t, config, asynqlock.Middleware(db.Another(), byPayload, nil), func(ctx context.Context, task *asynq.Task) error {
				key := byPayload(task)
				mu.Lock()
				running[key]++
				most[key] = max(most[key], running[key])
				mu.Unlock()
				time.Sleep(time.Minute)
				mu.Lock()
				running[key]--
				processed++
				mu.Unlock()
				return ctx.Err()
			})
		}
		for range 3 {
			for _, key := range []string{"a", "b", ""} {
				r.enqueue(t, key)
			}
		}
		time.Sleep(8 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if most["a"] != 1 || most["b"] != 1 || most[""] != 3 || processed != 9 {
			t.Errorf("%d processed, at most at once: %v", processed, most)
		}
	})
}

// TestAHeldLockCostsNoRetry has a lock that is held for much longer than the retries of a task last.
func TestAHeldLockCostsNoRetry(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		isFailure func(error) bool
		retries   int
		burnt     int
	}{
		"as documented":     {asynqlock.IsFailure, 1, 0},
		"the last try":      {asynqlock.IsFailure, 0, 0},
		"without IsFailure": {nil, 1, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r, db := newRedis(t), sqllocktest.New(t, seldom)
				config := config
				config.IsFailure = test.isFailure
				lease, err := db.Lock(t.Context(), "import")
				must(t, err)
				var processed atomic.Int32
				r.serve(t, config, asynqlock.Middleware(db.Another(), byPayload, nil), func(context.Context, *asynq.Task) error {
					processed.Add(1)
					return nil
				})
				task := r.enqueue(t, "import", asynq.MaxRetry(test.retries), asynq.Retention(time.Hour))
				time.Sleep(5 * time.Minute)
				retried := r.info(t, task).Retried
				must(t, lease.Unlock(t.Context()))
				time.Sleep(2 * time.Minute)
				if info := r.info(t, task); processed.Load() != 1 || info.State != asynq.TaskStateCompleted || retried != test.burnt {
					t.Errorf("processed %d times, %v, %d retries", processed.Load(), info.State, retried)
				}
			})
		})
	}
}

// TestAnOutageCostsNoRetry has the lock's database away for three minutes, also on the last try.
func TestAnOutageCostsNoRetry(t *testing.T) {
	t.Parallel()
	for retries, opts := range map[int]*sqllock.RegistryOptions{0: {WaitThroughOutages: true}, 1: nil} {
		t.Run(fmt.Sprint(retries, " retries"), func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) { bridgesAnOutage(t, retries, opts) })
		})
	}
}

func bridgesAnOutage(t *testing.T, retries int, opts *sqllock.RegistryOptions) {
	t.Helper()
	r, db := newRedis(t), sqllocktest.New(t, opts)
	var processed atomic.Int32
	r.serve(t, config, asynqlock.Middleware(db.Registry, byPayload, nil), func(context.Context, *asynq.Task) error {
		processed.Add(1)
		return nil
	})
	db.Break(errors.New("cut off"))
	task := r.enqueue(t, "import", asynq.MaxRetry(retries), asynq.Retention(time.Hour))
	time.Sleep(3 * time.Minute)
	db.Break(nil)
	time.Sleep(2 * time.Minute)
	if info := r.info(t, task); processed.Load() != 1 || info.State != asynq.TaskStateCompleted || info.Retried != 0 {
		t.Errorf("processed %d times, %v, %d retries", processed.Load(), info.State, info.Retried)
	}
}

// TestAShutdownPutsAWaitingTaskBack has a task wait on its last try. A server that starts later
// processes it.
func TestAShutdownPutsAWaitingTaskBack(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, db := newRedis(t), sqllocktest.New(t, seldom)
		lease, err := db.Lock(t.Context(), "import")
		must(t, err)
		var processed atomic.Int32
		count := asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			processed.Add(1)
			return nil
		})
		registry := db.Another()
		first := asynq.NewServer(r, config)
		must(t, first.Start(asynqlock.Middleware(registry, byPayload, nil)(count)))
		task := r.enqueue(t, "import", asynq.MaxRetry(0), asynq.Retention(time.Hour))
		time.Sleep(time.Minute)
		began := time.Now()
		first.Shutdown()
		if took := time.Since(began); took > 10*time.Second { // asynq.Config.ShutdownTimeout is 8 s
			t.Error(took)
		}
		must(t, registry.Close(t.Context()))
		if info := r.info(t, task); info.State != asynq.TaskStatePending || processed.Load() != 0 {
			t.Fatal(info.State, processed.Load())
		}
		r.serve(t, config, asynqlock.Middleware(db.Another(), byPayload, nil), count)
		must(t, lease.Unlock(t.Context()))
		time.Sleep(time.Minute)
		if info := r.info(t, task); info.State != asynq.TaskStateCompleted || processed.Load() != 1 {
			t.Error(info.State, processed.Load())
		}
	})
}

// TestATaskSeesTheLoss has another process take the lock while the task is processed.
func TestATaskSeesTheLoss(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r, db := newRedis(t), sqllocktest.New(t, nil)
		began, cause := make(chan struct{}, 1), make(chan error, 1)
		r.serve(t, config, asynqlock.Middleware(db.Registry, byPayload, nil), func(ctx context.Context, _ *asynq.Task) error {
			_, err := db.LeaseFrom(ctx, "import")
			if err != nil {
				t.Error(err)
			}
			began <- struct{}{}
			<-ctx.Done()
			cause <- context.Cause(ctx)
			return ctx.Err()
		})
		task := r.enqueue(t, "import", asynq.MaxRetry(0))
		<-began
		db.Lose("import")
		is(t, <-cause, sqllock.ErrLockLost)
		time.Sleep(time.Minute)
		if info := r.info(t, task); info.State != asynq.TaskStateArchived {
			t.Error(info.State)
		}
	})
}

// TestAReleaseThatFails does not make a task fail that is done.
func TestAReleaseThatFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := sqllocktest.New(t, nil)
		process := asynqlock.Middleware(db.Registry, byPayload, nil)(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
			db.Break(errors.New("cut off"))
			return nil
		}))
		must(t, process.ProcessTask(t.Context(), asynq.NewTask("import", []byte("import"))))
	})
}

// TestErrorsOfTheTask are failures of it: its own error, about a lock of its own as well, and a bad
// key.
func TestErrorsOfTheTask(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := sqllocktest.New(t, nil)
		own := &sqllock.HeldError{Key: "import", Left: time.Hour}
		process := func(ctx context.Context, registry *sqllock.Registry, key string, opts *asynqlock.Options) error {
			handler := asynq.HandlerFunc(func(context.Context, *asynq.Task) error { return own })
			return asynqlock.Middleware(registry, byPayload, opts)(handler).ProcessTask(ctx, asynq.NewTask("import", []byte(key)))
		}
		for _, err := range []error{
			process(t.Context(), db.Registry, "import", nil),
			process(t.Context(), db.Registry, "", nil),
			process(t.Context(), db.Registry, "\xff", nil),
			process(t.Context(), nil, "import", nil),
			process(t.Context(), db.Registry, "import", &asynqlock.Options{Wait: -1}),
		} {
			if !asynqlock.IsFailure(err) || asynqlock.RetryDelay(0, err, asynq.NewTask("import", nil)) > 5*time.Minute {
				t.Error(err)
			}
		}
		if asynqlock.IsFailure(nil) {
			t.Error("nil is a failure")
		}
		lease, err := db.Another().Lock(t.Context(), "import")
		must(t, err)
		began := time.Now()
		err = process(t.Context(), db.Registry, "import", &asynqlock.Options{Wait: 5 * time.Second})
		is(t, err, sqllock.ErrNotAcquired)
		delay := asynqlock.RetryDelay(0, err, nil)
		if waited := time.Since(began); asynqlock.IsFailure(err) || waited < 5*time.Second || delay < time.Second || delay > 10*time.Second {
			t.Errorf("%v after %v, delay %v", err, waited, delay)
		}
		must(t, lease.Unlock(t.Context()))
		must(t, db.Close(t.Context()))
		err = process(t.Context(), db.Registry, "import", nil)
		is(t, err, sqllock.ErrClosed)
		if asynqlock.IsFailure(err) {
			t.Error(err)
		}
	})
}
