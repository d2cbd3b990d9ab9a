// Package contender contains the lock libraries that are compared, each behind one small
// interface. To add a contender, add a value to one of the lists of this package.
package contender

import (
	"context"
	"errors"
	"runtime/debug"
	"slices"
	"strings"
	"time"
)

// A Contender is a lock library with a driver and settings.
type Contender struct {
	// Name is unique: library, settings and driver with slashes in between.
	Name string
	// Library is its Go module or its name. Version is that of the module,
	// unless given.
	Library, Version string
	// Database is one of package durable's kinds.
	Database string
	// Settings describe the differences from the library's defaults.
	Settings string
	// Cannot has the loads that the contender does not support, with the reasons.
	Cannot map[string]string
	// Only are the names of loads, or their first words, that are run for the contender;
	// nil means all but those that only take contenders which name them.
	Only []string
	// Also are the loads beside, when Only is nil, that only take contenders which name them.
	Also []string
	// If Quick is true, the contender takes part in the smoke test.
	Quick bool

	// FindVersion returns the version if only the contender knows it. It may be nil.
	FindVersion func(ctx context.Context) (string, error)
	// Prepare creates tables, once for each server. It may be nil.
	Prepare func(ctx context.Context, at Place) error
	// Open opens a session, which stands for one process of an application.
	Open func(ctx context.Context, at Place) (Session, error)
}

// A Place is the database of a session, and how the session uses it.
type Place struct {
	// DSN is the DSN of the server, or a directory.
	DSN string
	// Connections is the maximum size of a pool.
	Connections int
	// TTL is the time-to-live of locks, if there is one. 0 means the library's default.
	TTL time.Duration
	// If Apart is true, waits of this session are abandoned, so it must share nothing with
	// other sessions.
	Apart bool
	// If Alone is true, all locks belong to one caller, which never waits for itself.
	Alone bool
}

// A Session is an open contender.
type Session interface {
	// Lock acquires the lock of key, waiting until ctx ends, and returns a function that
	// releases it.
	Lock(ctx context.Context, key string) (Unlock, error)
	// Connections returns the number of the session's open connections.
	Connections() int
	Close() error
}

// An Unlock releases a lock.
type Unlock func(ctx context.Context) error

// A Runner is a session that runs workers itself, because it is in another process.
type Runner interface {
	// Run acquires and releases with the given number of workers, each with its own key.
	Run(ctx context.Context, workers int, warm, measure time.Duration) (Outcome, error)
}

// An Outcome is the result of a [Runner]. Unknown durations are 0.
type Outcome struct {
	PairsPerSecond float64
	Mean, P50, P99 time.Duration
}

// ErrMissing is wrapped by the error of Prepare if the machine lacks a program that the
// contender needs.
var ErrMissing = errors.New("missing on this machine")

// ErrCannot is returned by sessions that do not support an operation.
var ErrCannot = errors.New("this contender cannot do that")

// Enters reports whether the contender takes part in a load. If named is true, the load only takes
// contenders that name it.
func (c Contender) Enters(load string, named bool) bool {
	switch {
	case c.Cannot[load] != "":
		return false
	case names(c.Only, load) || names(c.Also, load):
		return true
	default:
		return c.Only == nil && !named
	}
}

// names reports whether a load, or the first words of its name, are among some.
func names(some []string, load string) bool {
	return slices.ContainsFunc(some, func(one string) bool { return load == one || strings.HasPrefix(load, one+" ") })
}

// VersionOf returns the version of the contender's library.
func (c Contender) VersionOf(ctx context.Context) string {
	if c.FindVersion != nil {
		if version, err := c.FindVersion(ctx); err == nil {
			return version
		}
	}
	if c.Version != "" {
		return c.Version
	}
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return "unknown"
	}
	for _, module := range info.Deps {
		if module.Path == c.Library {
			return module.Version
		}
	}
	return "unknown"
}

// All returns all contenders, grouped by database.
func All() []Contender {
	var all []Contender
	for _, some := range [][]Contender{
		raw(), batches(), grouped(), waiters(), opened(), sqllocks(), pglocks(), advisory(), pgbench(), getLock(), springs(), redislocks(), flocks(),
	} {
		all = append(all, some...)
	}
	return all
}

// Select returns the contenders whose names begin with one of the words, or all if there are
// no words.
func Select(all []Contender, words []string) []Contender {
	if len(words) == 0 {
		return all
	}
	var selected []Contender
	for _, c := range all {
		for _, word := range words {
			if strings.HasPrefix(c.Name, word) {
				selected = append(selected, c)
				break
			}
		}
	}
	return selected
}
