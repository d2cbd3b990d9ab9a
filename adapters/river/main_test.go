package riverlock_test

import (
	"context"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
	"github.com/riverqueue/river/rivertype"

	"github.com/sqllock/sqllock"
	riverlock "github.com/sqllock/sqllock/adapters/river"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
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

// importArgs are the arguments of the jobs.
type importArgs struct{ Shop string }

func (importArgs) Kind() string { return "import" }

func byKind(job *rivertype.JobRow) string { return job.Kind }

// worker is a worker of such jobs.
type worker struct {
	river.WorkerDefaults[importArgs]
	work func(context.Context) error
}

func (w worker) Work(ctx context.Context, _ *river.Job[importArgs]) error { return w.work(ctx) }

type client = river.Client[pgx.Tx]

// newClient returns a client that polls often.
func newClient(pool *pgxpool.Pool, middleware rivertype.WorkerMiddleware, work func(context.Context) error) (*client, error) {
	workers := river.NewWorkers()
	river.AddWorker(workers, worker{work: work})
	return river.NewClient(riverpgxv5.New(pool), &river.Config{
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 4}},
		Workers:           workers,
		Middleware:        []rivertype.Middleware{middleware},
		FetchPollInterval: 100 * time.Millisecond,
		JobTimeout:        -1,
	})
}

// newRiver returns a pool of a new database that river has migrated.
func newRiver(t *testing.T) *pgxpool.Pool {
	t.Helper()
	db := dbtest.Postgres(t)
	pool := check.Value(pgxpool.New(t.Context(), db.DSN))(t)
	t.Cleanup(pool.Close)
	migrator := check.Value(rivermigrate.New(riverpgxv5.New(pool), nil))(t)
	must(t, check.ErrorOf(migrator.Migrate(t.Context(), rivermigrate.DirectionUp, nil)))
	return pool
}

// start starts a client with jobs that may be tried once, and returns what happens to them. It is stopped with the test.
func start(t *testing.T, c *client, jobs int) <-chan *river.Event {
	t.Helper()
	events, unsubscribe := c.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobSnoozed)
	for range jobs {
		must(t, check.ErrorOf(c.Insert(t.Context(), importArgs{}, &river.InsertOpts{MaxAttempts: 1})))
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	must(t, c.Start(ctx))
	t.Cleanup(func() {
		must(t, c.Stop(ctx))
		cancel()
		unsubscribe()
	})
	return events
}

// readme is the code of README.md. The compiler checks it; the tests run the same calls.
var _ = readme

func readme(pool *pgxpool.Pool, workers *river.Workers, registry *sqllock.Registry) (*river.Client[pgx.Tx], error) {
	oneAtATime := riverlock.Middleware(registry, func(job *rivertype.JobRow) string { return job.Kind }, nil)
	client, err := river.NewClient(riverpgxv5.New(pool), &river.Config{
		Middleware: []rivertype.Middleware{oneAtATime},
		Queues:     map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: 10}},
		Workers:    workers,
	})
	return client, err
}
