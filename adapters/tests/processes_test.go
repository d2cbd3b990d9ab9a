package tests_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/caddyserver/certmagic"
	"github.com/go-co-op/gocron/v2"
	"github.com/google/uuid"
	"github.com/pressly/goose/v3"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/certmagiclock"
	"github.com/sqllock/sqllock/adapters/gocronlock"
	"github.com/sqllock/sqllock/adapters/gooselock"
	"github.com/sqllock/sqllock/adapters/httplock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/sync/job"
	"github.com/sqllock/sqllock/sync/leader"
)

// ttl is longer than a machine stands still: no lease ends but by [dbtest.DB.Shorten].
const ttl = time.Hour

// A library is what the processes use.
type library struct {
	// start makes a function that has the library call [worker.work] under its lock.
	start func(context.Context, *worker) (run func(context.Context) error, err error)
	waits bool   // a run waits for the lock, and is not refused
	next  string // what a process says that runs after another one
}

var libraries = map[string]library{
	"gocron locker":  {startGocron, false, "refused"}, // by the minimum hold
	"gocron elector": {startElector, true, "working"},
	"goose":          {startGoose, true, "done"}, // nothing is left to do
	"certmagic":      {startCertmagic, true, "done"},
	"job":            {startJob, false, "refused"},
	"httplock":       {startHTTP, false, "working"},
}

// TestProcesses has processes use each library over one database: one of them works at a time, also
// when another one was killed at its work.
//
// It takes some seconds: it starts three processes for each library and database.
func TestProcesses(t *testing.T) {
	t.Parallel()
	for name, library := range libraries {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
				must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
				dir := t.TempDir()
				first := start(t, name, dir, db)
				asks(t, first, "run", "working")
				second := start(t, name, dir, db)
				asks(t, second, "try", "refused")
				first.Kill()
				asks(t, second, "try", "refused") // a crash does not release the lock
				db.Shorten(t, "INT_LOCK", int(2*ttl/time.Second))
				asks(t, second, "run", "working")

				third := start(t, name, dir, db)
				asks(t, third, "try", "refused")
				if library.waits {
					third.Tell("run")
					asks(t, second, "finish", "done")
				} else {
					asks(t, second, "finish", "done")
					third.Tell("run")
				}
				third.Want(library.next)
			})
		})
	}
}

func asks(t *testing.T, p *child.Process, command, want string) {
	t.Helper()
	p.Tell(command)
	p.Want(want)
}

func startJob(_ context.Context, w *worker) (func(context.Context) error, error) {
	return job.New(w.registry, "report", ttl, w.work), nil
}

func startGocron(_ context.Context, w *worker) (func(context.Context) error, error) {
	locker := gocronlock.New[gocron.Lock](w.registry, &gocronlock.Options{MinHold: ttl})
	return startScheduler(w, make(chan error), gocron.WithDistributedLocker(locker))
}

// startElector has the process lead until the end of its first run.
func startElector(ctx context.Context, w *worker) (func(context.Context) error, error) {
	elector, err := leader.New(w.registry, "scheduler", nil)
	if err != nil {
		return nil, err
	}
	ctx, resign := context.WithCancel(ctx)
	ended := check.Begin(func() error {
		return elector.Run(ctx, func(ctx context.Context, _ *sqllock.Lease) error {
			<-ctx.Done()
			return ctx.Err()
		})
	})
	results := make(chan error)
	run, err := startScheduler(w, results, gocron.WithDistributedElector(elector), gocron.WithMonitor(skips{results}))
	return func(ctx context.Context) error {
		if _, limited := ctx.Deadline(); limited {
			return run(ctx)
		}
		for elector.IsLeader(ctx) != nil {
			time.Sleep(time.Millisecond)
		}
		if err := run(ctx); err != nil {
			return err
		}
		resign()
		if err := <-ended; !errors.Is(err, context.Canceled) {
			return err
		}
		return nil
	}, err
}

// startScheduler starts a scheduler, and makes a function that has it run a job once. Job.RunNow would
// fail on a machine that stands still for a second.
func startScheduler(w *worker, results chan error, opts ...gocron.SchedulerOption) (func(context.Context) error, error) {
	scheduler, err := gocron.NewScheduler(opts...)
	if err != nil {
		return nil, err
	}
	scheduler.Start()
	once := gocron.OneTimeJob(gocron.OneTimeJobStartImmediately())
	listeners := gocron.WithEventListeners(
		gocron.AfterLockError(func(_ uuid.UUID, _ string, err error) { results <- err }),
		gocron.AfterJobRuns(func(uuid.UUID, string) { results <- nil }),
		gocron.AfterJobRunsWithError(func(_ uuid.UUID, _ string, err error) { results <- err }),
	)
	return func(context.Context) error {
		if _, err := scheduler.NewJob(once, gocron.NewTask(w.work), gocron.WithName("report"), listeners); err != nil {
			return err
		}
		return <-results
	}, nil
}

// skips is a gocron.Monitor: gocron has no listener for the runs that its elector refuses.
type skips struct{ results chan<- error }

func (s skips) IncrementJob(_ uuid.UUID, _ string, _ []string, status gocron.JobStatus) {
	if status == gocron.Skip {
		s.results <- sqllock.ErrNotAcquired
	}
}

func (skips) RecordJobTiming(time.Time, time.Time, uuid.UUID, string, []string) {}

func startGoose(_ context.Context, w *worker) (func(context.Context) error, error) {
	dialects := map[string]goose.Dialect{"sqlite": goose.DialectSQLite3, "postgres": goose.DialectPostgres, "mysql": goose.DialectMySQL}
	migration := goose.NewGoMigration(1, &goose.GoFunc{RunDB: func(ctx context.Context, _ *sql.DB) error { return w.work(ctx) }}, nil)
	provider, err := goose.NewProvider(dialects[w.database], w.db, nil,
		goose.WithGoMigrations(migration), goose.WithLocker(gooselock.New(w.registry, "goose")))
	return func(ctx context.Context) error { return check.ErrorOf(provider.Up(ctx)) }, err
}

func startCertmagic(_ context.Context, w *worker) (func(context.Context) error, error) {
	files := &certmagic.FileStorage{Path: w.dir}
	config, _ := newConfig(storage{files, certmagiclock.New(w.registry, "")}, &issuer{work: w.work})
	return func(ctx context.Context) error { return config.ObtainCertSync(ctx, "example.com") }, nil
}

// startHTTP starts a server, whose only client runs in the same process.
func startHTTP(_ context.Context, w *worker) (func(context.Context) error, error) {
	locked := httplock.New(w.registry, func(r *http.Request) string { return r.URL.Path }, nil)
	server := httptest.NewServer(locked(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		_ = w.work(r.Context())
	})))
	return func(context.Context) error {
		response, err := server.Client().Post(server.URL+"/orders/42", "", nil) //nolint:noctx // the server refuses at once
		if err != nil {
			return err
		}
		_ = response.Body.Close()
		left, _ := strconv.Atoi(response.Header.Get("Retry-After"))
		switch {
		case response.StatusCode == http.StatusLocked && left > 0:
			return sqllock.ErrNotAcquired
		case response.StatusCode != http.StatusOK:
			return fmt.Errorf("status %d", response.StatusCode)
		default:
			return nil
		}
	}, nil
}

// The variables of a process: the database and the directory that it shares with others.
const (
	databaseVariable  = "SQLLOCK_ADAPTERS_DATABASE"
	driverVariable    = "SQLLOCK_ADAPTERS_DRIVER"
	dsnVariable       = "SQLLOCK_ADAPTERS_DSN"
	directoryVariable = "SQLLOCK_ADAPTERS_DIRECTORY"
)

func start(t *testing.T, library, dir string, db *dbtest.DB) *child.Process {
	t.Helper()
	return child.Start(t, library,
		databaseVariable+"="+db.Name, driverVariable+"="+db.Driver, dsnVariable+"="+db.DSN, directoryVariable+"="+dir)
}

// A worker is what a process works with.
type worker struct {
	registry *sqllock.Registry
	db       *sql.DB
	database string // sqlite, postgres or mysql
	dir      string
	finish   chan struct{}
}

func newWorker(ctx context.Context) (*worker, error) {
	database := os.Getenv(databaseVariable)
	db, err := sql.Open(os.Getenv(driverVariable), os.Getenv(dsnVariable))
	if err != nil {
		return nil, err
	}
	dialects := map[string]dialect.Dialect{"sqlite": dialect.SQLite(), "postgres": dialect.Postgres(), "mysql": dialect.MySQL()}
	repository, err := sqllock.NewRepository(ctx, db, dialects[database], nil)
	if err != nil {
		return nil, err
	}
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: ttl, NoRenew: true})
	return &worker{registry, db, database, os.Getenv(directoryVariable), make(chan struct{})}, err
}

// role returns a process that uses a library. It is told to "run" under the lock, to "try", which
// does not wait, and to "finish" its work.
func (l library) role() child.Role {
	return func(ctx context.Context, told <-chan string) error {
		w, err := newWorker(dbtest.Unhurried(ctx))
		if err != nil {
			return err
		}
		run, err := l.start(ctx, w)
		if err != nil {
			return err
		}
		for {
			select {
			case command := <-told:
				w.do(ctx, command, run)
			case <-ctx.Done():
				return nil // what it holds stays, as after a crash
			}
		}
	}
}

func (w *worker) do(ctx context.Context, command string, run func(context.Context) error) {
	switch command {
	case "run":
		go say(ctx, run)
	case "try":
		go func() {
			// real time: the lock is held, so a late end of the try changes nothing
			ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			say(ctx, run)
		}()
	case "finish":
		w.finish <- struct{}{}
	}
}

// say runs, and says what came of it.
func say(ctx context.Context, run func(context.Context) error) {
	switch err := run(ctx); {
	case err == nil:
		fmt.Println("done")
	case errors.Is(err, sqllock.ErrNotAcquired), ctx.Err() != nil:
		fmt.Println("refused")
	default:
		fmt.Println("failed:", err)
	}
}

// work is what the library runs under the lock: it lasts until the test says so.
func (w *worker) work(ctx context.Context) error {
	fmt.Println("working")
	select {
	case <-w.finish:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
