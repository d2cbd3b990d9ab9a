// Package contender has the lock libraries that are compared, each behind one
// small interface. A contender is a value in one of the lists of this package;
// another one is another value.
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
	// Settings say what differs from the library's defaults.
	Settings string
	// Cannot says under which loads it makes no sense, and why.
	Cannot map[string]string
	// Only are names of loads, or their first words, if the others would tell
	// nothing new; nil is all.
	Only []string
	// Quick ones are enough for a smoke test.
	Quick bool

	// FindVersion asks for the version where only the contender knows it. It may
	// be nil.
	FindVersion func(ctx context.Context) (string, error)
	// Prepare makes tables, once for each server. It may be nil.
	Prepare func(ctx context.Context, at Place) error
	// Open begins what one process of an application would be.
	Open func(ctx context.Context, at Place) (Session, error)
}

// A Place is where a session finds its database, and how it is to use it.
type Place struct {
	// DSN leads to the server, or is a directory.
	DSN string
	// Connections are the most that a pool may have.
	Connections int
	// TTL is the time-to-live of locks, where there is one. 0 is the library's
	// default.
	TTL time.Duration
	// Apart says that the session's locks will be given up while they are waited
	// for: it is to have nothing in common with others.
	Apart bool
	// Alone says that all locks are one caller's, who never waits for itself.
	Alone bool
}

// A Session is a contender at work.
type Session interface {
	// Lock acquires the lock of key, waiting as long as ctx lasts, and returns
	// what gives it back.
	Lock(ctx context.Context, key string) (Unlock, error)
	// Connections is how many the session has open to its database.
	Connections() int
	Close() error
}

// An Unlock releases a lock.
type Unlock func(ctx context.Context) error

// A Runner is a session that runs workers by itself, because it lives in
// another process.
type Runner interface {
	// Run acquires and releases with so many workers, each with a key of its
	// own.
	Run(ctx context.Context, workers int, warm, measure time.Duration) (Outcome, error)
}

// An Outcome is what a [Runner] tells. Durations that it does not know are 0.
type Outcome struct {
	PairsPerSecond float64
	Mean, P50, P99 time.Duration
}

// ErrMissing is in the error of Prepare if the machine lacks what a contender
// needs.
var ErrMissing = errors.New("missing on this machine")

// ErrCannot is returned by sessions that cannot do what is asked.
var ErrCannot = errors.New("this contender cannot do that")

// Enters tells whether the contender takes part in a load.
func (c Contender) Enters(load string) bool {
	if c.Cannot[load] != "" {
		return false
	}
	return c.Only == nil || slices.ContainsFunc(c.Only, func(one string) bool { return load == one || strings.HasPrefix(load, one+" ") })
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

// All returns all contenders, those of a database side by side.
func All() []Contender {
	var all []Contender
	for _, some := range [][]Contender{
		raw(), batches(), grouped(), waiters(), sqllocks(), pglocks(), advisory(), pgbench(), getLock(), springs(), redislocks(), flocks(),
	} {
		all = append(all, some...)
	}
	return all
}

// Select returns the contenders whose names begin with one of the words; all if
// there is no word.
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
