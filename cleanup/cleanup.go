// Package cleanup removes what a lock registry no longer needs: unused lock objects from
// its cache, and expired rows from the table. Call [Run] in a goroutine, or [Once] from a
// cron job.
//
// Correctness does not depend on it: an expired row can always be taken over, and the size
// of the registry's cache is limited. Use it if there are many keys that are used only
// once.
package cleanup

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock"
)

// Defaults of [Options].
const (
	DefaultInterval = 10 * time.Minute
	DefaultAge      = time.Hour
)

// Options are the settings of a cleanup. A zero field means its default.
type Options struct {
	// Interval is the time between two cleanups of Run. Each one is shortened by a
	// random tenth at most, so that processes do not clean up at the same time.
	// Default 10 min.
	Interval time.Duration

	// Age is how long a lock object must have been unused before it is removed from the
	// cache. Default 1 h.
	Age time.Duration

	// Logger receives one line for each cleanup: the result at level Info (Debug if
	// nothing was removed), errors at level Warn. Default slog.Default.
	Logger *slog.Logger
}

// A Result is what a cleanup has removed.
type Result struct {
	// Forgotten is the number of lock objects that were removed from the cache.
	Forgotten int
	// Deleted is the number of rows that were deleted: of leases that are over, and of busy keys that are free. On PostgreSQL
	// each process has up to 16 of the latter, so that they are no sign of a fault.
	Deleted int64
}

// Run cleans up immediately and then every opts.Interval, until ctx ends. It starts no
// goroutine: call it in one of yours. opts may be nil. It returns
//   - ctx.Err() when ctx has ended,
//   - a [sqllock.ErrClosed] when the registry was closed,
//   - a [sqllock.ErrInvalid] immediately if opts are invalid.
//
// It logs errors of the database and goes on.
func Run(ctx context.Context, registry *sqllock.Registry, opts *Options) error {
	o, err := opts.complete()
	if err != nil {
		return err
	}
	for {
		if _, err := o.round(ctx, registry); errors.Is(err, sqllock.ErrClosed) {
			return err
		}
		timer := time.NewTimer(o.Interval - rand.N(o.Interval/10+1))
		select {
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		case <-timer.C:
		}
	}
}

// Once cleans up a single time, for example from a cron job. If one part of the cleanup
// fails, the other one runs all the same. opts may be nil; its Interval is not used.
func Once(ctx context.Context, registry *sqllock.Registry, opts *Options) (Result, error) {
	o, err := opts.complete()
	if err != nil {
		return Result{}, err
	}
	return o.round(ctx, registry)
}

// complete returns the options with the defaults filled in.
func (o *Options) complete() (Options, error) {
	var all Options
	if o != nil {
		all = *o
	}
	if all.Interval == 0 {
		all.Interval = DefaultInterval
	}
	if all.Age == 0 {
		all.Age = DefaultAge
	}
	if all.Logger == nil {
		all.Logger = slog.Default()
	}
	if all.Interval < 0 || all.Age < 0 {
		return all, fmt.Errorf("%w: cleanup interval %v and age %v must be positive", sqllock.ErrInvalid, all.Interval, all.Age)
	}
	return all, nil
}

// round cleans up once and logs the result. It does not log the end of ctx as an error.
func (o Options) round(ctx context.Context, registry *sqllock.Registry) (Result, error) {
	start := time.Now()
	forgotten, forgetErr := registry.ExpireUnusedOlderThan(o.Age)
	deleted, deleteErr := registry.DeleteExpired(ctx)
	result := Result{forgotten, deleted}
	err := errors.Join(forgetErr, deleteErr)
	level, attrs := slog.LevelInfo, []slog.Attr{
		slog.Int("forgotten", forgotten), slog.Int64("deleted", deleted), slog.Duration("took", time.Since(start)),
	}
	switch {
	case err != nil && ctx.Err() == nil:
		level, attrs = slog.LevelWarn, append(attrs, slog.Any("error", err))
	case result == Result{}:
		level = slog.LevelDebug
	}
	o.Logger.LogAttrs(ctx, level, "sqllock: cleanup", attrs...)
	return result, err
}
