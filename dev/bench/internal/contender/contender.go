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
	// Loads are the names of the loads, or their first words, under which the contender is measured.
	Loads []string
	// If Quick is true, the contender takes part in the smoke test.
	Quick bool
	// Together is how many sessions of a contest share a process of the operating system; 0 is one.
	Together int
	// Beside are the names of the two contenders that have half of the processes of a contest each, if it is two.
	Beside []string

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

// An Outcome is the result of a [Runner].
type Outcome struct {
	PairsPerSecond float64
	P50, P99       time.Duration
}

// A JointSession acquires several locks as one.
type JointSession interface {
	Session
	LockAll(ctx context.Context, keys []string) (Unlock, error)
}

// ErrMissing is wrapped by the error of Prepare if the machine lacks a program that the
// contender needs.
var ErrMissing = errors.New("missing on this machine")

// The loads of most contenders: those in which each worker has its own key; beside these, those in which
// some wait for a key; and beside these, those that need more than a connection for each lock.
var (
	sending  = []string{"pairs", "delay"}
	waiting  = append([]string{"hot key", "hand-off"}, sending...)
	anything = append([]string{"waiters"}, waiting...)
)

const tenKeys = "ten keys"

// Enters reports whether the contender takes part in a load.
func (c Contender) Enters(load string) bool {
	return slices.ContainsFunc(c.Loads, func(one string) bool { return load == one || strings.HasPrefix(load, one+" ") })
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
		raw(), opened(), sqllocks(), pglocks(), advisory(), getLock(), springs(), flock(), redislocks(), redsyncs(), rawRedis(),
	} {
		all = append(all, some...)
	}
	return all
}
