package demo

import (
	"io"
	"time"

	"github.com/sqllock/sqllock/cmd/sqllock/internal/connect"
	"github.com/sqllock/sqllock/cmd/sqllock/internal/exit"
)

// Limits of the options.
const (
	minTTL     = 500 * time.Millisecond
	maxWorkers = 16
)

// lockKey is the key of the lock that the workers contend for.
const lockKey = "demo/counter"

// options are the flags of one demo, and its output.
type options struct {
	flags       *connect.Flags
	workers     int
	rounds      int
	duration    time.Duration // instead of rounds, if not 0
	ttl         time.Duration
	withoutLock bool
	page        bool
	out         io.Writer
}

// check rejects values with which the demo would show nothing.
func (o *options) check() error {
	switch {
	case o.workers < 2 || o.workers > maxWorkers:
		return exit.Usagef("--workers %d: it must be 2 to %d", o.workers, maxWorkers)
	case o.rounds < 2*o.workers:
		return exit.Usagef("--rounds %d: it must be at least 2 for each worker", o.rounds)
	case o.duration < 0 || o.duration > 0 && o.duration < time.Second:
		return exit.Usagef("--duration %v: it must be at least 1s", o.duration)
	case o.ttl < minTTL:
		return exit.Usagef("--ttl %v: it must be at least %v, longer than a round", o.ttl, minTTL)
	}
	return nil
}
