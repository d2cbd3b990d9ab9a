// Package cleanup is the housekeeping of a lock registry, for a goroutine ([Run])
// or for a cron job ([Once]). It forgets lock objects that are no longer used and
// deletes expired rows from the table.
//
// Neither is needed for correctness: a contender takes an expired row over by
// itself, and the registry's cache has a limit. It keeps the table and the
// process small where keys are many and used once.
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

// Options are the settings of a clean-up. A zero field means its default.
type Options struct {
	// Interval is the time between two rounds of Run. Each is up to a tenth
	// shorter, at random, so that the processes of a fleet part ways. Default
	// 10 min.
	Interval time.Duration

	// Age is how long a lock object must have been unused to be forgotten.
	// Default 1 h.
	Age time.Duration

	// Logger gets one line for each round: what was done at level Info (Debug if
	// it was nothing), trouble at Warn. Default slog.Default.
	Logger *slog.Logger
}

// A Result says what a round has done.
type Result struct {
	// Forgotten is the number of lock objects.
	Forgotten int
	// Deleted is the number of expired rows.
	Deleted int64
}

// Run cleans up at once and then every opts.Interval, until ctx ends, and returns
// ctx.Err(). Trouble with the database is logged and does not end it. Bad options
// give a [sqllock.ErrInvalid] at once; a closed registry ends it with a
// [sqllock.ErrClosed]. opts may be nil. Run starts no goroutine: call it in one of
// yours.
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

// Once cleans up a single time: what to call from a cron job. Both parts are
// tried, whatever becomes of the other. opts may be nil; its Interval is not used.
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

// round does both parts and logs them. The end of ctx is no trouble.
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
	o.Logger.LogAttrs(ctx, level, "sqllock: clean-up", attrs...)
	return result, err
}
