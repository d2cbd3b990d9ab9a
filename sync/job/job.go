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
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/refused"
)

// New returns a function that runs fn under the lock of key, if no other instance does. Otherwise
// it returns a [sqllock.ErrNotAcquired] at once and has not run fn: this run is skipped. All
// instances must use the same key, which must not change between builds.
//
// minHold is how long the lock stays taken at least, from when it was acquired, also after fn has returned
// or failed, and after [sqllock.Registry.Close]. With it, a fast job does not run again on an instance
// whose clock is late. It must be longer than the difference of the instances' clocks, and shorter than the
// time between two runs: half of that time is a good choice. With 0 the lock is free when fn returns.
//
// The lease is renewed automatically for as long as fn runs, whatever the registry's AutoRenew says.
// Its time-to-live, the registry's, is how long the lock stays taken after an instance has
// crashed, even if minHold is longer: the job may then run again in the same period. A registry with
// a MaxHold ends the lease after that.
//
// The context of fn is that of the lease: it is made from the one that the returned
// function is given, ends with cause [sqllock.ErrLockLost] before another instance can run
// the job, and carries the lease for [sqllock.Registry.LeaseFrom]. fn must return when it
// ends. If it goes on, another instance may run the job at the same time.
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
// An fn that acquires other locks should not return their ErrNotAcquired unchanged: the run
// would look skipped. The Key of the HeldError is then the other lock's.
//
// A panic of fn releases the lock, and goes on. The returned function is safe for concurrent use:
// two calls in one process exclude each other as those of two instances do. Called with the
// context of fn itself, it enters the lock again and runs fn.
func New(registry *sqllock.Registry, key string, minHold time.Duration, fn func(context.Context) error) func(context.Context) error {
	return func(ctx context.Context) error {
		if registry == nil {
			return fmt.Errorf("%w: a job needs a registry", sqllock.ErrInvalid)
		}
		lock, err := registry.Obtain(key)
		if err != nil {
			return refused.Report(ctx, registry, key, err)
		}
		ran, run := false, fn
		if fn != nil { // otherwise ExecuteLockedFor has the error
			run = func(ctx context.Context) error {
				ran = true
				return fn(ctx)
			}
		}
		err = lock.WithAutoRenew(true).WithMinHold(minHold).ExecuteLockedFor(ctx, 0, run)
		if !ran { // fn may return an ErrInvalid of its own
			err = refused.Report(ctx, registry, key, err)
		}
		return err
	}
}
