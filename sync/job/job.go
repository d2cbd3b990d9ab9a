// Package job turns a function into a job that runs on one instance of an application at a time,
// and at most once in a period over all instances. It is for whatever starts work on every
// instance: a ticker, a cron library, a queue.
//
//	report := job.New(registry, "report", 30*time.Second, func(ctx context.Context) error {
//		return sendReport(ctx) // stop when ctx ends: another instance may run the job soon after
//	})
//
// Call report each minute, for example, on every instance. If it returns a
// [sqllock.ErrNotAcquired], the run was skipped.
package job

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/jobs"
	"github.com/sqllock/sqllock/internal/runs"
	"github.com/sqllock/sqllock/observe"
)

// An Option changes the function that [New] returns.
type Option func(*job)

// UntilSuccess lets a job succeed once in a period: the lock stays taken for minHold only if fn has returned
// nil. After a run that returned an error or panicked, whose instance died, or that [sqllock.Registry.Close]
// has cut off, the next call on any instance runs the job again. So the instances must call it more often than
// the job is to succeed: every ten minutes from three to six with a minHold of 12 hours, for example, for once a
// night.
//
// Without it a job that has failed is not run again before minHold has passed. Neither way runs a job twice at
// once, and in neither has fn run exactly once: it may have failed, or died, after it has done its work.
//
// A run that succeeds takes one statement more, which renews the lease. If that fails, the returned function
// returns its error, and the job may run again in the same period. If fn has unlocked the lease itself, and
// another instance has the lock by then, the error is a [sqllock.ErrNotHeld].
func UntilSuccess() Option { return func(j *job) { j.untilSuccess = true } }

// New returns a function that runs fn under the lock of key, if no other instance does. Otherwise
// it returns a [sqllock.ErrNotAcquired] at once and has not run fn: this run is skipped. All
// instances must use the same key, which must not change between builds.
//
// minHold is how long the lock stays taken at least, from when it was acquired, also after fn has returned
// or failed, and after [sqllock.Registry.Close]: see [UntilSuccess] for another rule. It must be longer than the difference of
// the instances' clocks, and shorter than the time between two runs: half of that is a good choice. With 0 the lock is free
// when fn returns.
//
// The lease is renewed automatically for as long as fn runs, also with the registry's NoRenew.
// Its time-to-live, the registry's, is how long the lock stays taken after an instance has
// crashed, even if minHold is longer: the job may then run again in the same period. A registry with
// a MaxHold ends the lease after that.
//
// fn must return when its context ends, or another instance may run the job at the same time. It is that of the lease: made from
// the one that the returned function is given, ended with cause [sqllock.ErrLockLost] before another instance can run the job.
//
// The errors of the returned function are
//
//   - [sqllock.ErrNotAcquired], a *[sqllock.HeldError] with the key, if the run is skipped. If the
//     context given has ended, its error is found, too.
//   - [sqllock.ErrDatabase], if the database failed before fn was run, or [sqllock.ErrClosed].
//   - [sqllock.ErrInvalid] for a bad key, a negative minHold, or if registry or fn is nil. Observers of
//     the registry receive it too, since a scheduler may drop it: [observe.SlogObserver] logs an error.
//   - fn's own error, joined with that of [sqllock.Lease.Unlock]: sqllock.ErrLockLost, if the
//     lease was lost while fn ran, or an ErrDatabase, if the lock was not released. The job has run
//     then.
//
// Observers of the registry are told of each call, also of one that is skipped: see observe.Observer's JobRun.
//
// With a minHold of a second or more, the table of names gets how the last run ended, when one last succeeded, and how many
// were skipped, for `sqllock jobs`. This takes three statements a run, two if it has failed, which delay the release by
// 250 ms at most, or a moment longer if the connection has to be closed, and one statement a minute for skipped calls, if New
// is called once and not for each run. It is best effort, and [sqllock.RegistryOptions].DisableNames turns it off.
//
// An fn that acquires other locks should not return their ErrNotAcquired unchanged: the run
// would look skipped. The Key of the HeldError is then the other lock's.
//
// A panic of fn releases the lock, and goes on. The returned function is safe for concurrent use:
// two calls in one process exclude each other as those of two instances do. Called with the
// context of fn itself, it enters the lock again and runs fn; minHold still counts from when the lock was first acquired.
func New(registry *sqllock.Registry, key string, minHold time.Duration, fn func(context.Context) error, opts ...Option) func(context.Context) error {
	j := &job{registry: registry, key: key, minHold: minHold, fn: fn}
	for _, option := range opts {
		option(j)
	}
	return func(ctx context.Context) (err error) {
		r := run{job: j}
		defer func() { // also if fn panics
			r.countSkip(ctx, err)
			r.report(ctx, err)
		}()
		return r.execute(ctx)
	}
}

// A job is what was given to New.
type job struct {
	registry     *sqllock.Registry
	key          string
	minHold      time.Duration
	fn           func(context.Context) error
	untilSuccess bool
	skips        skips
}

// check returns why the job cannot run.
func (j *job) check() error {
	switch {
	case j.registry == nil:
		return fmt.Errorf("%w: a job needs a registry", sqllock.ErrInvalid)
	case j.fn == nil:
		return fmt.Errorf("%w: the job %q has no function to run", sqllock.ErrInvalid, j.key)
	case j.minHold < 0:
		return fmt.Errorf("%w: minimum hold %v of %q is negative", sqllock.ErrInvalid, j.minHold, j.key)
	}
	return nil
}

// A run is one call of a job.
type run struct {
	*job

	began    time.Time // zero if fn was not called
	took     time.Duration
	returned bool  // fn has, with result
	result   error // of fn
}

// execute runs the job under its lock.
func (r *run) execute(ctx context.Context) error {
	if err := r.check(); err != nil {
		return err
	}
	lock, err := r.registry.Obtain(r.key)
	if err != nil {
		return err
	}
	lock = lock.WithAutoRenew(true)
	kept := lock.WithMinHold(r.minHold)
	first := kept
	if r.untilSuccess {
		first = lock
	}
	outer := ctx
	return first.ExecuteLockedFor(ctx, 0, func(ctx context.Context) (err error) {
		defer func() { r.record(ctx, err != nil || isLost(outer, ctx)) }() // also if fn panics
		if err := r.call(ctx); err != nil || !r.untilSuccess || isLost(outer, ctx) {
			return err // of a lost lease the release says so, also if fn has unlocked it
		}
		return r.keep(ctx, kept)
	})
}

// isLost reports whether the lease with the context ctx, made from outer, has been lost, and not that of outer alone. If both
// have, it says no, and keep finds out.
func isLost(outer, ctx context.Context) bool {
	cause := context.Cause(ctx)
	return errors.Is(cause, sqllock.ErrLockLost) && cause != context.Cause(outer) //nolint:errorlint // all losses are one value
}

// call runs fn.
func (r *run) call(ctx context.Context) error {
	r.began = time.Now()
	defer func() { r.took = time.Since(r.began) }()
	r.result = r.fn(ctx)
	r.returned = true
	return r.result
}

// keep gives the lock its minimum hold, by entering it once more. fn has succeeded, also if its context has ended.
func (r *run) keep(ctx context.Context, kept *sqllock.JdbcLock) error {
	lease, err := kept.TryLock(context.WithoutCancel(ctx))
	if errors.Is(err, sqllock.ErrNotAcquired) {
		return fmt.Errorf("%w: %q: the job has run, and has unlocked before it returned: it may run again in the same period", sqllock.ErrNotHeld, r.key)
	}
	if err != nil {
		return err
	}
	return lease.Unlock(ctx)
}

// record writes how the run has ended: it has failed, or has panicked, or succeeded.
func (r *run) record(ctx context.Context, failed bool) {
	if r.recorded() {
		runs.Record(ctx, r.registry, r.key, runs.Last{Took: r.took, Failed: failed || !r.returned})
	}
}

var errPanicked = errors.New("the job has panicked")

// report tells the observers what has become of the call, which returns err.
func (r *run) report(ctx context.Context, err error) {
	e, kept := observe.JobRun{Job: r.key, Err: err, Began: r.began, Took: r.took}, r.minHold
	switch {
	case r.began.IsZero():
	case !r.returned:
		e.Outcome, e.Err = observe.JobFailed, errPanicked
	case r.result != nil, errors.Is(err, sqllock.ErrLockLost), r.untilSuccess && err != nil:
		e.Outcome = observe.JobFailed
	}
	if r.untilSuccess && e.Outcome != "" {
		kept = 0
	}
	jobs.Report(ctx, r.registry, e, kept)
}

// recordedFrom is the minimum hold from which on runs are recorded: over all instances they are few.
const recordedFrom = time.Second

// recorded reports whether the table of names gets what becomes of the job.
func (j *job) recorded() bool { return j.minHold >= recordedFrom }

// skipsEvery is how often a process counts its skipped calls of a job in the database.
const skipsEvery = time.Minute

// skips are the skipped calls of a job that are not in the database yet.
type skips struct {
	mu      sync.Mutex
	n       int64
	written time.Time
}

// due counts a skip, and returns how many are to be written now.
func (s *skips) due() (n int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	if now := time.Now(); now.Sub(s.written) >= skipsEvery {
		n, s.n, s.written = s.n, 0, now
	}
	return n
}

// countSkip counts a call that was skipped because the lock was taken.
func (r *run) countSkip(ctx context.Context, err error) {
	var held *sqllock.HeldError
	if !r.began.IsZero() || !errors.As(err, &held) || ctx.Err() != nil || !r.recorded() {
		return
	}
	if n := r.skips.due(); n > 0 {
		runs.Skip(ctx, r.registry, r.key, n)
	}
}
