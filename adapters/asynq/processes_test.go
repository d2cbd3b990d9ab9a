package asynqlock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"

	"github.com/sqllock/sqllock"
	asynqlock "github.com/sqllock/sqllock/adapters/asynq"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
	"github.com/sqllock/sqllock/internal/test/child"
)

const (
	fileVariable  = "ASYNQLOCK_TEST_FILE"
	redisVariable = "ASYNQLOCK_TEST_REDIS"
	queueVariable = "ASYNQLOCK_TEST_QUEUE"
)

// server is a server of one queue. It prints what becomes of its tasks, which end when it is told.
// Its leases last for an hour, so the speed of the machine does not matter.
func server(ctx context.Context, told <-chan string) error {
	registry, err := sqlitelock.Open(ctx, os.Getenv(fileVariable), &sqlitelock.Options{
		Registry: sqllock.RegistryOptions{TTL: time.Hour},
	})
	if err != nil {
		return err
	}
	config := config
	config.Queues = map[string]int{os.Getenv(queueVariable): 1}
	config.DelayedTaskCheckInterval = 100 * time.Millisecond
	config.RetryDelayFunc = func(int, error, *asynq.Task) time.Duration { return 0 }
	config.ErrorHandler = asynq.ErrorHandlerFunc(func(_ context.Context, _ *asynq.Task, err error) {
		if !asynqlock.IsFailure(err) {
			fmt.Println("held")
		}
	})
	server := asynq.NewServer(asynq.RedisClientOpt{Addr: os.Getenv(redisVariable)}, config)
	middleware := asynqlock.Middleware(registry, func(*asynq.Task) string { return "import" }, nil)
	err = server.Start(middleware(asynq.HandlerFunc(func(context.Context, *asynq.Task) error {
		fmt.Println("processes")
		<-told
		return nil
	})))
	if err != nil {
		return err
	}
	<-ctx.Done()
	server.Shutdown()
	return registry.Close(context.WithoutCancel(ctx))
}

// TestTwoProcesses has tasks of one key in the queues of two processes, which take seconds to start
// and to stop.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	redis := miniredis.RunT(t)
	client := asynq.NewClient(asynq.RedisClientOpt{Addr: redis.Addr()})
	defer client.Close()
	file := filepath.Join(t.TempDir(), "locks.db")
	start := func(queue string) *child.Process {
		process := child.Start(t, "server", fileVariable+"="+file, redisVariable+"="+redis.Addr(), queueVariable+"="+queue)
		_, err := client.Enqueue(asynq.NewTask("import", nil), asynq.Queue(queue), asynq.MaxRetry(1), asynq.TaskID(queue), asynq.Retention(time.Hour))
		must(t, err)
		return process
	}
	first := start("a")
	first.Want("processes")
	second := start("b")
	for range 3 { // more often than it has retries
		second.Want("held")
	}
	first.Tell("end")
	line := second.Next()
	for line == "held" {
		line = second.Next()
	}
	if line != "processes" {
		t.Fatal(line)
	}
	second.Tell("end")
	inspector := asynq.NewInspector(asynq.RedisClientOpt{Addr: redis.Addr()})
	defer inspector.Close()
	for _, queue := range []string{"a", "b"} {
		for {
			info, err := inspector.GetTaskInfo(queue, queue)
			must(t, err)
			if info.State == asynq.TaskStateCompleted {
				break
			}
			time.Sleep(10 * time.Millisecond) // asynq has no event for it
		}
	}
	first.Stop()
	second.Stop()
}
