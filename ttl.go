package sqllock

import "time"

// DefaultTTL is the default time-to-live of a lease: Spring's.
const DefaultTTL = 10 * time.Second

// MinTTL is the shortest time-to-live. A shorter lease would be over before its holder
// starts to work.
const MinTTL = 10 * time.Millisecond

const (
	shortestMargin = 2 * time.Millisecond // covers the rounding of SQLite's clock
	longestMargin  = 500 * time.Millisecond
)

// checkTTL refuses a time-to-live that cannot make a lease.
func checkTTL(ttl time.Duration) error {
	if ttl < MinTTL {
		return invalid("time-to-live %v: it must be at least %v", ttl, MinTTL)
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
