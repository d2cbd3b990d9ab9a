package riverlock_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	"github.com/sqllock/sqllock/sqllocktest"
)

// The next three tests run river on PostgreSQL, in real time. Their leases last for an hour, so
// the speed of the machine does not matter.

// soon snoozes jobs for less than river's default.
var soon = &riverlock.Options{Snooze: 50 * time.Millisecond}

func newLocks(t *testing.T) *sqllocktest.Registry {
	t.Helper()
	return sqllocktest.New(t, &sqllock.RegistryOptions{TTL: time.Hour, NoRenew: true})
}

// TestJobsOfAKeyAreWorkedOneAtATime has a client with several workers.
func TestJobsOfAKeyAreWorkedOneAtATime(t *testing.T) {
	t.Parallel()
	pool := newRiver(t)
	locks := newLocks(t)
	var running atomic.Int32
	c, err := newClient(pool, riverlock.Middleware(locks.Registry, byKind, soon), func(ctx context.Context) error {
		if running.Add(1) > 1 {
			t.Error("two jobs are worked")
		}
		// real time: the others come meanwhile: if they are late, the test notices less
		time.Sleep(20 * time.Millisecond) // the others come meanwhile
		running.Add(-1)
		return ctx.Err()
	})
	must(t, err)
	for events, completed := start(t, c, 4), 0; completed < 4; {
		event := <-events
		switch event.Kind {
		case river.EventKindJobCompleted:
			completed++
		case river.EventKindJobSnoozed:
		default:
			t.Fatal(event.Kind, event.Job.Errors)
		}
	}
}

// TestAHeldLockCostsNoAttempt has a lock that is held, and then a database that is down.
func TestAHeldLockCostsNoAttempt(t *testing.T) {
	t.Parallel()
	pool := newRiver(t)
	locks := newLocks(t)
	c := check.Value(newClient(pool, riverlock.Middleware(locks.Another(), byKind, soon), func(context.Context) error { return nil }))(t)
	lease := check.Value(locks.Lock(t.Context(), "import"))(t)
	events := start(t, c, 1)
	snoozed := func() {
		t.Helper()
		for range 3 {
			if event := <-events; event.Kind != river.EventKindJobSnoozed || event.Job.Attempt != 0 {
				t.Fatal(event.Kind, event.Job.Attempt)
			}
		}
	}
	snoozed()
	locks.Break(errors.New("cut off"))
	for len(events) > 0 {
		<-events
	}
	snoozed()
	locks.Break(nil)
	must(t, lease.Unlock(t.Context()))
	event := <-events
	for event.Kind == river.EventKindJobSnoozed {
		event = <-events
	}
	if event.Kind != river.EventKindJobCompleted || event.Job.Attempt != 1 {
		t.Error(event.Kind, event.Job.Attempt)
	}
}

// TestAJobSeesTheLoss deletes the row of a job's lock, as an operator may.
func TestAJobSeesTheLoss(t *testing.T) {
	t.Parallel()
	pool := newRiver(t)
	locks := newLocks(t)
	cause := make(chan error, 1)
	c, err := newClient(pool, riverlock.Middleware(locks.Registry, byKind, nil), func(ctx context.Context) error {
		lease, err := locks.LeaseFrom(ctx, "import")
		if err != nil {
			return err
		}
		if _, err := locks.Repository().Delete(ctx, "import", lease.Holder()); err != nil {
			return err
		}
		is(t, lease.Renew(ctx), sqllock.ErrLockLost)
		<-ctx.Done()
		cause <- context.Cause(ctx)
		return nil
	})
	must(t, err)
	event := <-start(t, c, 1)
	is(t, <-cause, sqllock.ErrLockLost)
	if event.Kind != river.EventKindJobFailed || event.Job.State != rivertype.JobStateDiscarded {
		t.Error(event.Kind, event.Job.State)
	}
}

// work calls the middleware as river does.
func work(t *testing.T, registry *sqllock.Registry, key string, opts *riverlock.Options, fn func(context.Context) error) error {
	t.Helper()
	middleware := riverlock.Middleware(registry, byKind, opts)
	if !middleware.IsMiddleware() {
		t.Error("no middleware")
	}
	return middleware.Work(t.Context(), &rivertype.JobRow{Kind: key}, fn)
}

// TestErrorsOfTheJob cost an attempt: its own error, about a lock of its own as well, and bad input.
func TestErrorsOfTheJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, nil)
		own := &sqllock.HeldError{Key: "import", Left: time.Hour}
		failing := func(context.Context) error { return own }
		for _, test := range []struct {
			key    string
			opts   *riverlock.Options
			wanted error
		}{
			{"import", nil, own},
			{"", nil, own},
			{"\xff", nil, sqllock.ErrInvalid},
			{"import", &riverlock.Options{Wait: -1}, sqllock.ErrInvalid},
			{"import", &riverlock.Options{Snooze: -1}, sqllock.ErrInvalid},
		} {
			err := work(t, locks.Registry, test.key, test.opts, failing)
			is(t, err, test.wanted)
			if errors.Is(err, &river.JobSnoozeError{}) {
				t.Error("snoozed: ", err)
			}
		}
		is(t, work(t, nil, "import", nil, failing), sqllock.ErrInvalid)
		must(t, work(t, locks.Registry, "import", nil, func(context.Context) error {
			locks.Break(errors.New("cut off")) // so that the release fails
			return nil
		}))
	})
}

// TestSnoozes has a job that cannot be worked now.
func TestSnoozes(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, &sqllock.RegistryOptions{TTL: time.Minute, NoRenew: true})
		never := func(context.Context) error { //nolint:unparam // what a job is
			t.Error("it was worked")
			return nil
		}
		snoozed := func(opts *riverlock.Options, wanted error, least, most time.Duration) {
			t.Helper()
			err := work(t, locks.Registry, "import", opts, never)
			is(t, err, wanted)
			var snooze *river.JobSnoozeError
			if !errors.As(err, &snooze) || snooze.Duration < least || snooze.Duration > most {
				t.Error(err)
			}
		}
		lease := check.Value(locks.Another().Lock(t.Context(), "import"))(t)
		time.Sleep(30 * time.Second)
		snoozed(nil, sqllock.ErrNotAcquired, 29*time.Second, 30*time.Second)
		snoozed(&riverlock.Options{Snooze: time.Hour}, sqllock.ErrNotAcquired, time.Hour, time.Hour)
		began := time.Now()
		snoozed(&riverlock.Options{Wait: 29500 * time.Millisecond}, sqllock.ErrNotAcquired, time.Second, time.Second)
		if waited := time.Since(began); waited < 29500*time.Millisecond {
			t.Error(waited)
		}
		is(t, lease.Unlock(t.Context()), sqllock.ErrLockLost)
		cutOff := errors.New("cut off")
		locks.Break(cutOff)
		snoozed(nil, cutOff, time.Second, time.Second)
		locks.Break(nil)
		must(t, locks.Close(t.Context()))
		snoozed(nil, sqllock.ErrClosed, time.Second, time.Second)
	})
}

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
