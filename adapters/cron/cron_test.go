package cronlock_test

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock"
	cronlock "github.com/sqllock/sqllock/adapters/cron"
	"github.com/sqllock/sqllock/internal/runs"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/pagecode"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/sqllocktest"
)

// late is the schedule of an instance whose clock is late.
type late struct {
	cron.Schedule
	by time.Duration
}

func (l late) Next(t time.Time) time.Time { return l.Schedule.Next(t.Add(-l.by)).Add(l.by) }

// schedule starts a cron with one job, each minute. It is stopped with the test.
func schedule(t *testing.T, by time.Duration, job cron.Job) {
	t.Helper()
	every := check.Value(cron.ParseStandard("* * * * *"))(t)
	c := cron.New()
	c.Schedule(late{every, by}, job)
	c.Start()
	t.Cleanup(func() { <-c.Stop().Done() })
}

// TestAFastJobRunsOnceInAPeriod has three instances, whose clocks differ by seconds, start a job
// that takes no time. Without a minimum hold each of them runs it.
func TestAFastJobRunsOnceInAPeriod(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		minHold     time.Duration
		runs, skips int
	}{
		"minimum hold": {30 * time.Second, 10, 20},
		"none":         {0, 30, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				r := sqllocktest.New(t, nil)
				time.Sleep(10 * time.Second) // so that no clock is at a full minute
				var l log
				var runs atomic.Int32
				for i := range 3 {
					schedule(t, time.Duration(i)*3*time.Second, cronlock.Job(t.Context(), r.Another(), "report", test.minHold, &l, func(context.Context) error {
						runs.Add(1)
						return nil
					}))
				}
				time.Sleep(10 * time.Minute)
				skips, errs := l.logged()
				if runs := int(runs.Load()); runs != test.runs || skips != test.skips || len(errs) > 0 {
					t.Errorf("%d runs, %d skipped, %v", runs, skips, errs)
				}
			})
		})
	}
}

// TestAWrappedJob excludes an existing job, and logs that its lock was lost.
func TestAWrappedJob(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		var l log
		wrapped := func(registry *sqllock.Registry, run func()) cron.Job {
			wrapper := cronlock.Wrapper(t.Context(), registry, "report", time.Minute, &l)
			return cron.NewChain(wrapper).Then(cron.FuncJob(run))
		}
		wrapped(r.Another(), func() {
			wrapped(r.Another(), func() { t.Error("it ran twice") }).Run()
			r.Lose("report")
		}).Run()
		skips, errs := l.logged()
		if skips != 1 || len(errs) != 1 {
			t.Fatal(skips, errs)
		}
		is(t, errs[0], sqllock.ErrLockLost)
	})
}

// TestSkippedRunsAreWrittenOnceAMinute has a job that is skipped ten times write its count once, as package job promises.
func TestSkippedRunsAreWrittenOnceAMinute(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		var l log
		lease := check.Value(r.Another().Lock(t.Context(), "report"))(t)
		report := cronlock.Job(t.Context(), r.Registry, "report", time.Second, &l, func(context.Context) error { return nil })
		for range 10 {
			report.Run()
		}
		if run, _ := runs.Of(t.Context(), r.Repository(), "report"); run.Skips != 1 {
			t.Errorf("%d skips are written, want the first", run.Skips)
		}
		time.Sleep(time.Minute)
		report.Run()
		if run, _ := runs.Of(t.Context(), r.Repository(), "report"); run.Skips != 11 {
			t.Errorf("%d skips are written a minute later, want all 11", run.Skips)
		}
		must(t, lease.Unlock(t.Context()))
	})
}

// TestErrorsAreLogged has a job fail, panic, not start, and end with its context.
func TestErrorsAreLogged(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		var l log
		ctx, cancel := context.WithCancel(t.Context())
		failed, cutOff, runs := errors.New("failed"), errors.New("cut off"), 0
		cronlock.Job(ctx, r.Registry, "failing", 0, &l, func(context.Context) error { return failed }).Run()
		panicking := cronlock.Job(ctx, r.Registry, "panicking", 0, &l, func(context.Context) error { panic(failed) })
		cron.NewChain(cron.Recover(&l)).Then(panicking).Run()
		counting := cronlock.Job(ctx, r.Registry, "counting", 0, &l, func(context.Context) error {
			runs++
			return nil
		})
		r.Break(cutOff)
		counting.Run()
		r.Break(nil)
		counting.Run()
		cronlock.Job(ctx, r.Registry, "", 0, &l, func(context.Context) error { return nil }).Run()
		cronlock.Job(ctx, nil, "counting", 0, &l, func(context.Context) error { return nil }).Run()
		cancel()
		counting.Run()
		_, errs := l.logged()
		if runs != 1 || len(errs) != 5 {
			t.Fatal(runs, errs)
		}
		is(t, errs[0], failed)
		is(t, errs[1], failed)
		is(t, errs[2], cutOff)
		is(t, errs[3], sqllock.ErrInvalid)
		is(t, errs[4], sqllock.ErrInvalid)
	})
}

// TestAJobThatDoesNotGetAnotherLock fails, and is not taken for a skipped run. It loses its own lock
// as well.
func TestAJobThatDoesNotGetAnotherLock(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		var l log
		lease := check.Value(r.Another().Lock(t.Context(), "other"))(t)
		cronlock.Job(t.Context(), r.Registry, "report", 0, &l, func(ctx context.Context) error {
			r.Lose("report")
			_, err := r.TryLock(context.WithoutCancel(ctx), "other")
			return err
		}).Run()
		must(t, lease.Unlock(t.Context()))
		cronlock.Job(t.Context(), r.Registry, "report", 0, &l, nil).Run()
		skips, errs := l.logged()
		if skips != 0 || len(errs) != 2 {
			t.Fatal(skips, errs)
		}
		is(t, errs[0], sqllock.ErrNotAcquired)
		is(t, errs[0], sqllock.ErrLockLost)
		is(t, errs[1], sqllock.ErrInvalid)
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

// A log is a cron.Logger that keeps what it is given.
type log struct {
	mu     sync.Mutex
	skips  int
	errors []error
}

func (l *log) Info(string, ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.skips++
}

func (l *log) Error(err error, _ string, _ ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.errors = append(l.errors, err)
}

// logged returns how many runs were skipped, and the errors.
func (l *log) logged() (skips int, all []error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.skips, l.errors
}

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
