package job_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/runs"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sqllocktest"
	"github.com/sqllock/sqllock/sync/job"
)

func TestMain(m *testing.M) { testmain.Run(m) }

var (
	must = check.Must
	is   = check.Is
)

// inBubble runs a test in virtual time, with the registry of a first instance.
func inBubble(t *testing.T, test func(t *testing.T, r *sqllocktest.Registry)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, sqllocktest.New(t, nil)) })
}

// TestAFastJobRunsOnceInAPeriod has three instances whose clocks differ start a job that takes no
// time. Without a minimum hold each of them runs it.
func TestAFastJobRunsOnceInAPeriod(t *testing.T) {
	t.Parallel()
	const minutes = 10
	for name, test := range map[string]struct {
		minHold time.Duration
		runs    int
	}{
		"minimum hold":                   {30 * time.Second, minutes},
		"none":                           {0, 3 * minutes},
		"shorter than the clocks differ": {5 * time.Second, 2 * minutes},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
				runs := 0
				var instances []func(context.Context) error
				for range 3 {
					instances = append(instances, job.New(r.Another(), "report", test.minHold, func(context.Context) error {
						runs++
						return nil
					}))
				}
				for range minutes {
					began := time.Now()
					for i, late := range []time.Duration{0, 3 * time.Second, 7 * time.Second} {
						time.Sleep(time.Until(began.Add(late)))
						if err := instances[i](t.Context()); err != nil && !errors.Is(err, sqllock.ErrNotAcquired) {
							t.Error(err)
						}
					}
					time.Sleep(time.Until(began.Add(time.Minute)))
				}
				if runs != test.runs {
					t.Errorf("%d runs in %d minutes, want %d", runs, minutes, test.runs)
				}
			})
		})
	}
}

// TestALongJobIsNotRunTwice has a job take many times the time-to-live.
func TestALongJobIsNotRunTwice(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		running := 0
		long := func(ctx context.Context) error {
			if running++; running > 1 {
				t.Error("two instances run the job")
			}
			defer func() { running-- }()
			time.Sleep(10 * time.Minute)
			return ctx.Err()
		}
		first, second := job.New(r.Registry, "report", 0, long), job.New(r.Another(), "report", 0, long)
		ended := check.Begin(func() error { return first(t.Context()) })
		time.Sleep(time.Second)
		for range 15 {
			err := second(t.Context())
			var held *sqllock.HeldError
			if !errors.As(err, &held) || held.Key != "report" || held.Left <= 0 {
				t.Error(err)
			}
			time.Sleep(30 * time.Second)
		}
		must(t, <-ended)
		must(t, second(t.Context()))
	})
}

// TestAFailedJobKeepsItsPeriod has a job fail, and panic: the next run comes with the next period.
func TestAFailedJobKeepsItsPeriod(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		failed := errors.New("failed")
		failing := job.New(r.Registry, "report", time.Minute, func(context.Context) error { return failed })
		panicking := job.New(r.Another(), "report", time.Minute, func(context.Context) error { panic(failed) })
		is(t, failing(t.Context()), failed)
		is(t, panicking(t.Context()), sqllock.ErrNotAcquired)
		time.Sleep(time.Minute + time.Second)
		func() {
			defer func() {
				if recover() != failed { //nolint:errorlint // the very value
					t.Error("the panic did not go on")
				}
			}()
			_ = panicking(t.Context())
		}()
		is(t, failing(t.Context()), sqllock.ErrNotAcquired)
		time.Sleep(time.Minute + time.Second)
		is(t, failing(t.Context()), failed)
	})
}

// TestErrorsBeforeTheJob has the job not run.
func TestErrorsBeforeTheJob(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		never := func(context.Context) error {
			t.Error("it ran")
			return nil
		}
		is(t, job.New(r.Registry, "", 0, never)(t.Context()), sqllock.ErrInvalid)
		is(t, job.New(r.Registry, "report", -1, never)(t.Context()), sqllock.ErrInvalid)
		is(t, job.New(nil, "report", 0, never)(t.Context()), sqllock.ErrInvalid)
		is(t, job.New(r.Registry, "report", time.Hour, nil)(t.Context()), sqllock.ErrInvalid)
		cutOff := errors.New("cut off")
		r.Break(cutOff)
		is(t, job.New(r.Registry, "report", 0, never)(t.Context()), cutOff)
		r.Break(nil)
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		err := job.New(r.Registry, "report", 0, never)(ended)
		is(t, err, context.Canceled)
		is(t, err, sqllock.ErrNotAcquired)
		must(t, r.Close(t.Context()))
		is(t, job.New(r.Registry, "report", 0, never)(t.Context()), sqllock.ErrClosed)
	})
}

// TestTheKeyTellsASkippedRun has a job fail to acquire another lock.
func TestTheKeyTellsASkippedRun(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		lease := check.Value(r.Another().TryLock(t.Context(), "other"))(t)
		nested := job.New(r.Registry, "report", 0, func(ctx context.Context) error { return check.ErrorOf(r.TryLock(ctx, "other")) })
		var held *sqllock.HeldError
		if err := nested(t.Context()); !errors.As(err, &held) || held.Key != "other" {
			t.Error(err)
		}
		must(t, lease.Unlock(t.Context()))
	})
}

// TestAFailedJobIsMadeUpFor has a job that is to succeed once in a day fail in each way, and each time another instance run it
// minutes later. Once it has succeeded, no instance does, although the one that has is gone.
func TestAFailedJobIsMadeUpFor(t *testing.T) {
	t.Parallel()
	failed, gone := errors.New("failed"), errors.New("gone")
	for name, fails := range map[string]func(context.Context, *sqllocktest.Registry, *sqllock.Registry) error{
		"an error": func(context.Context, *sqllocktest.Registry, *sqllock.Registry) error { return failed },
		"a panic":  func(context.Context, *sqllocktest.Registry, *sqllock.Registry) error { panic(failed) },
		"closed": func(ctx context.Context, _ *sqllocktest.Registry, r *sqllock.Registry) error {
			return r.Close(context.WithoutCancel(ctx))
		},
		"lost": func(_ context.Context, r *sqllocktest.Registry, _ *sqllock.Registry) error {
			r.Lose("report")
			return nil
		},
		"cut off": func(ctx context.Context, r *sqllocktest.Registry, _ *sqllock.Registry) error {
			r.Break(gone)
			<-ctx.Done()
			r.Break(nil)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
				first, runs := r.Another(), 0
				nightly := func(registry *sqllock.Registry, fn func(context.Context) error) func(context.Context) error {
					return job.New(registry, "report", 20*time.Hour, fn, job.UntilSuccess())
				}
				func() {
					defer func() { _ = recover() }()
					_ = nightly(first, func(ctx context.Context) error { return fails(ctx, r, first) })(t.Context())
				}()
				ctx, cancel := context.WithCancel(t.Context())
				second := r.Another()
				succeeds := nightly(second, func(context.Context) error {
					runs++
					cancel() // as when the instance is to stop: the job has succeeded all the same
					return nil
				})
				time.Sleep(10 * time.Minute)
				must(t, succeeds(ctx))
				must(t, second.Close(t.Context()))
				third := nightly(r.Another(), func(context.Context) error {
					runs++
					return nil
				})
				time.Sleep(19 * time.Hour)
				is(t, third(t.Context()), sqllock.ErrNotAcquired)
				time.Sleep(2 * time.Hour)
				if must(t, third(t.Context())); runs != 2 {
					t.Errorf("%d runs", runs)
				}
			})
		})
	}
}

// TestAJobThatHasUnlocked has a job unlock its lease itself, and another instance take the lock, or not, before it
// returns. It has run, so its error is none of a run that was skipped.
func TestAJobThatHasUnlocked(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		other := r.Another()
		taken := true
		var lease *sqllock.Lease
		unlocks := func(ctx context.Context) error {
			own := check.Value(r.LeaseFrom(ctx, "report"))(t)
			must(t, own.Unlock(ctx))
			if taken {
				lease = check.Value(other.TryLock(context.WithoutCancel(ctx), "report"))(t)
			}
			return nil
		}
		until := job.New(r.Registry, "report", time.Minute, unlocks, job.UntilSuccess())
		err := until(t.Context())
		is(t, err, sqllock.ErrNotHeld)
		check.IsNot(t, err, sqllock.ErrNotAcquired)
		if run, _ := runs.Of(t.Context(), r.Repository(), "report"); run.Last == nil || !run.Last.Failed || run.Succeeded != nil {
			t.Errorf("recorded: %+v", run)
		}
		must(t, lease.Unlock(t.Context()))
		taken = false
		must(t, until(t.Context()))
		is(t, check.ErrorOf(other.TryLock(t.Context(), "report")), sqllock.ErrNotAcquired) // for its minimum hold
		time.Sleep(2 * time.Minute)
		must(t, job.New(r.Registry, "report", 0, unlocks)(t.Context()))
	})
}

// TestALossIsSaidOnce has a job lose its lease: the error says so once.
func TestALossIsSaidOnce(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		for name, options := range map[string][]job.Option{"plain": nil, "until success": {job.UntilSuccess()}} {
			err := job.New(r.Registry, name, time.Minute, func(context.Context) error {
				r.Lose(name)
				return nil
			}, options...)(t.Context())
			is(t, err, sqllock.ErrLockLost)
			if strings.Count(err.Error(), sqllock.ErrLockLost.Error()) != 1 {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// TestALostRunDoesNotKeepItsLock has a job unlock the lease that it has lost: the run has failed, so another instance may run
// the job again.
func TestALostRunDoesNotKeepItsLock(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		run := job.New(r.Registry, "report", time.Minute, func(ctx context.Context) error {
			lease := check.Value(r.LeaseFrom(ctx, "report"))(t)
			r.Lose("report")
			time.Sleep(2 * sqllock.DefaultTTL) // until the lock is free again
			is(t, lease.Unlock(ctx), sqllock.ErrLockLost)
			return nil
		}, job.UntilSuccess())
		is(t, run(t.Context()), sqllock.ErrLockLost)
		must(t, check.Value(r.Another().TryLock(t.Context(), "report"))(t).Unlock(t.Context()))
	})
}

// TestAnOuterLeaseThatIsLostIsNotTheJobs has a job succeed while the lease is lost inside which it was called: it is kept.
func TestAnOuterLeaseThatIsLostIsNotTheJobs(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		outer := check.Value(r.Lock(t.Context(), "outer"))(t)
		run := job.New(r.Registry, "report", time.Minute, func(ctx context.Context) error {
			r.Lose("outer")
			<-ctx.Done()
			return nil
		}, job.UntilSuccess())
		must(t, run(outer.Context()))
		is(t, check.ErrorOf(r.Another().TryLock(t.Context(), "report")), sqllock.ErrNotAcquired)
		is(t, outer.Unlock(t.Context()), sqllock.ErrLockLost)
	})
}

// TestRunsAreReported has each outcome of a job, with when it can run again.
func TestRunsAreReported(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var last observe.JobRun
		reports := 0
		r := sqllocktest.New(t, &sqllock.RegistryOptions{Observers: []*observe.Observer{{JobRun: func(_ context.Context, e observe.JobRun) {
			last = e
			reports++
		}}, {}}, NoRenew: true})
		failed := errors.New("failed")
		expect := func(what string, fn func(context.Context) error, options []job.Option, want observe.JobRun) {
			t.Helper()
			began := time.Now()
			func() {
				defer func() { _ = recover() }()
				_ = job.New(r.Registry, "report", time.Minute, fn, options...)(t.Context())
			}()
			want.Job = "report"
			if want.Outcome == observe.JobRan || want.Outcome == observe.JobFailed {
				want.Began, want.Took = began, max(last.Took, time.Second) // it takes a moment to lose a lock
			}
			if left := time.Until(last.Next); !last.Next.IsZero() && want.Next.IsZero() || last.Next.IsZero() != want.Next.IsZero() || left > time.Minute {
				t.Errorf("%s: can run again at %v, in %v", what, last.Next, left)
			}
			err := last.Err
			last.Next, want.Next, last.Err = time.Time{}, time.Time{}, nil
			if last != want || (err == nil) != (want.Outcome == observe.JobRan) {
				t.Errorf("%s: %+v, %v, want %+v", what, last, err, want)
			}
		}
		later, untilSuccess := time.Now(), []job.Option{job.UntilSuccess()}
		second := func(err error) func(context.Context) error {
			return func(context.Context) error {
				time.Sleep(time.Second)
				return err
			}
		}
		expect("a failure that may be made up for", second(failed), untilSuccess, observe.JobRun{Outcome: observe.JobFailed})
		expect("a failure", second(failed), nil, observe.JobRun{Outcome: observe.JobFailed, Next: later})
		expect("within the minimum hold", second(nil), nil, observe.JobRun{Outcome: observe.JobSkipped, Next: later})
		time.Sleep(time.Minute)
		expect("a panic", func(context.Context) error { time.Sleep(time.Second); panic(failed) }, nil, observe.JobRun{Outcome: observe.JobFailed, Next: later})
		time.Sleep(time.Minute)
		expect("a success", second(nil), untilSuccess, observe.JobRun{Outcome: observe.JobRan, Next: later})
		time.Sleep(time.Minute)
		expect("a loss", func(context.Context) error {
			time.Sleep(time.Second)
			r.Lose("report")
			return nil
		}, nil, observe.JobRun{Outcome: observe.JobFailed})
		time.Sleep(time.Minute)
		expect("a success that does not count", func(context.Context) error {
			time.Sleep(time.Second)
			r.Break(failed)
			return nil
		}, untilSuccess, observe.JobRun{Outcome: observe.JobFailed})
		expect("no database", second(nil), nil, observe.JobRun{Outcome: observe.JobError})
		r.Break(nil)
		if before := reports; errors.Is(job.New(r.Registry, "", 0, second(nil))(t.Context()), sqllock.ErrInvalid) && reports != before {
			t.Error("a refusal is a run")
		}
	})
}

// TestRunsAreRecorded has instances run a job, and read what each other has recorded of it.
func TestRunsAreRecorded(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		var result error
		var panics any
		report := func(context.Context) error {
			time.Sleep(2 * time.Second)
			if panics != nil {
				panic(panics)
			}
			return result
		}
		one, two := job.New(r.Another(), "report", time.Minute, report), job.New(r.Another(), "report", time.Minute, report, job.UntilSuccess())
		known := func() runs.Run {
			run, _ := runs.Of(t.Context(), r.Repository(), "report")
			return run
		}
		for range 2 {
			must(t, one(t.Context()))
			time.Sleep(time.Hour)
		}
		result = errors.New("failed")
		is(t, two(t.Context()), result)
		panics = "out of range"
		func() {
			defer func() { _ = recover() }()
			_ = two(t.Context())
		}()
		run := known()
		if run.Key != "report" || run.Runs != 4 || run.Failures != 2 || !run.Last.Failed || run.Last.Code != nil || run.Last.Took != 2*time.Second {
			t.Errorf("%+v, last %+v", run, run.Last)
		}
		if ago := *run.Succeeded; ago < time.Hour || ago > time.Hour+time.Minute {
			t.Errorf("succeeded %v ago", ago)
		}
		result, panics = nil, nil
		must(t, one(t.Context()))
		if run := known(); run.Runs != 5 || run.Last.Failed || *run.Succeeded > time.Second || run.Skips != 0 {
			t.Errorf("%+v, last %+v", run, run.Last)
		}
	})
}

// TestARunWhoseLockIsGoneHasFailed has an operator remove the row. The run ends before its lease has noticed.
func TestARunWhoseLockIsGoneHasFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		run := job.New(r.Another(), "report", time.Minute, func(ctx context.Context) error {
			rows := check.Value(r.Repository().List(ctx))(t)
			return check.ErrorOf(r.Repository().DeleteRow(ctx, rows[0]))
		})
		is(t, run(t.Context()), sqllock.ErrLockLost)
		if known, _ := runs.Of(t.Context(), r.Repository(), "report"); known.Last == nil || !known.Last.Failed || known.Failures != 1 || known.Succeeded != nil {
			t.Errorf("%+v", known)
		}
	})
}

// TestSkipsAreCountedOnceAMinute has an instance skip many calls while another runs the job.
func TestSkipsAreCountedOnceAMinute(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		started, ended := make(chan struct{}), make(chan struct{})
		long := job.New(r.Another(), "report", time.Second, func(context.Context) error {
			close(started)
			<-ended
			return nil
		})
		done := make(chan error)
		go func() { done <- long(t.Context()) }()
		<-started
		other := job.New(r.Another(), "report", time.Second, func(context.Context) error { return nil })
		for i, want := range []int64{1, 1, 1, 4} {
			is(t, other(t.Context()), sqllock.ErrNotAcquired)
			if run, _ := runs.Of(t.Context(), r.Repository(), "report"); run.Skips != want || run.Runs != 0 {
				t.Errorf("after call %d: %+v, want %d skips", i, run, want)
			}
			time.Sleep(25 * time.Second)
		}
		close(ended)
		must(t, <-done)
	})
}

// TestWhatIsNotRecorded has jobs of which nothing is written: such as run often, and such as may not name their keys.
func TestWhatIsNotRecorded(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		silent, err := sqllock.NewRegistry(r.Repository(), &sqllock.RegistryOptions{DisableNames: true})
		must(t, err)
		defer func() { must(t, silent.Close(t.Context())) }()
		must(t, job.New(silent, "secret", time.Minute, func(context.Context) error { return nil })(t.Context()))
		must(t, job.New(r.Registry, "often", 999*time.Millisecond, func(context.Context) error { return nil })(t.Context()))
		if all, err := runs.Read(t.Context(), r.Repository()); err != nil || len(all) != 0 {
			t.Errorf("%v, %+v", err, all)
		}
	})
}
