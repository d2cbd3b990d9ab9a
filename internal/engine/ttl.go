package engine

import (
	"time"

	"github.com/sqllock/sqllock/internal/failure"
)

const (
	minTTL         = 10 * time.Millisecond // MinTTL of package sqllock
	shortestMargin = 2 * time.Millisecond  // covers the rounding of SQLite's clock
	longestMargin  = 500 * time.Millisecond
)

// CheckTTL refuses a time-to-live that cannot make a lease. least is that of the dialect.
func CheckTTL(ttl, least time.Duration) error {
	if least = max(least, minTTL); ttl < least {
		return failure.Invalid("time-to-live %v: it must be at least %v", ttl, least)
	}
	return nil
}

// margin is how much earlier than its row a lease ends: a tenth of the time-to-live,
// within limits. It covers the drift between the two clocks, which are never compared,
// and the time until a cancelled holder has noticed.
func margin(ttl time.Duration) time.Duration {
	return min(max(ttl/10, shortestMargin), longestMargin)
}

// leaseEnd returns when the lease of a row ends whose statement was sent at sent or later.
// It is counted on the monotonic clock from before the statement was sent, so it lies
// before the end of the row however long the statement took.
func leaseEnd(sent time.Time, ttl time.Duration) time.Time {
	return sent.Add(ttl - margin(ttl))
}
