package asynqlock_test

import (
	"context"
	"net"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	"github.com/sqllock/sqllock"
	asynqlock "github.com/sqllock/sqllock/adapters/asynq"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/pagecode"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

var (
	must = check.Must
	is   = check.Is
)

func TestMain(m *testing.M) { testmain.Run(m) }

// TestTheReadme finds the code of README.md in code that is compiled.
func TestTheReadme(t *testing.T) {
	t.Parallel()
	pagecode.Check(t, "README.md", "*_test.go")
}

// inMemory is a Redis in the bubble of a test, whose clock it uses.
type inMemory struct{ *miniredis.Miniredis }

func newRedis(t *testing.T) inMemory {
	t.Helper()
	r := miniredis.NewMiniRedis()
	r.ClockTTL(true)
	t.Cleanup(r.Close)
	return inMemory{r}
}

// MakeRedisClient implements asynq.RedisConnOpt.
func (r inMemory) MakeRedisClient() any {
	return redis.NewClient(&redis.Options{
		Dialer: func(context.Context, string, string) (net.Conn, error) { return r.Dial() },
	})
}

// enqueue adds a task to a queue.
func (r inMemory) enqueue(t *testing.T, payload string, opts ...asynq.Option) *asynq.TaskInfo {
	t.Helper()
	client := asynq.NewClient(r)
	defer client.Close()
	info, err := client.Enqueue(asynq.NewTask("import", []byte(payload)), opts...)
	must(t, err)
	return info
}

// info returns what became of a task.
func (r inMemory) info(t *testing.T, task *asynq.TaskInfo) *asynq.TaskInfo {
	t.Helper()
	inspector := asynq.NewInspector(r)
	defer inspector.Close()
	info, err := inspector.GetTaskInfo(task.Queue, task.ID)
	must(t, err)
	return info
}

// config has the functions of this package.
var config = asynq.Config{
	Concurrency:    4,
	LogLevel:       asynq.FatalLevel,
	IsFailure:      asynqlock.IsFailure,
	RetryDelayFunc: asynqlock.RetryDelay,
}

// serve starts a server. It is shut down with the test.
func (r inMemory) serve(t *testing.T, config asynq.Config, middleware asynq.MiddlewareFunc, handler asynq.HandlerFunc) {
	t.Helper()
	server := asynq.NewServer(r, config)
	must(t, server.Start(middleware(handler)))
	t.Cleanup(server.Shutdown)
}

// seldom are options for tests that last for long: in a bubble each poll costs real time.
var seldom = &sqllock.RegistryOptions{TTL: time.Minute, IdleBetweenTries: 10 * time.Second, AutoRenew: true}

// byPayload gives a task its payload as key.
func byPayload(task *asynq.Task) string { return string(task.Payload()) }
