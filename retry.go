package sqllock

import (
	"context"
	"math/rand/v2"
	"time"

	"github.com/sqllock/sqllock/dialect"
)

const (
	// maxRaces is how often an acquisition is sent again after a lost race
	// before it counts as not acquired.
	maxRaces = 10
	// The pause after the n-th lost race is random, up to shortestPause
	// doubled n times or longestPause.
	shortestPause = time.Millisecond
	longestPause  = 64 * time.Millisecond
)

const (
	// longestPin is how long a statement waits altogether for a row that a
	// transaction has pinned.
	longestPin = time.Second
	// longestRemoval is the same for a deletion, which leaves a lock taken that nobody holds
	// if it fails: on a slow server those who try to acquire may hold the row for a second.
	longestRemoval = 3 * time.Second
)

// isBlocked tells whether err means that a transaction has the row pinned.
func (r *Repository) isBlocked(err error) bool {
	return err != nil && r.dialect.Classify(err) == dialect.Blocked
}

// isRefusal tells whether err means that the statement was not applied.
func (r *Repository) isRefusal(err error) bool { return r.isRace(err) || r.isBlocked(err) }

// isRace tells whether err means that the statement lost a race and may be sent
// again.
func (r *Repository) isRace(err error) bool {
	return err != nil && r.dialect.Classify(err) == dialect.Transient
}

// retry runs fn until it succeeds, fails for good, has waited too long for a
// pinned row, or ctx ends, and makes an ErrDatabase or ErrPinned of its error.
func (r *Repository) retry(ctx context.Context, op, key string, fn func() error) error {
	return r.retryPinned(ctx, longestPin, op, key, fn)
}

// retryPinned is retry with another limit to the wait for a pinned row.
func (r *Repository) retryPinned(ctx context.Context, longest time.Duration, op, key string, fn func() error) error {
	began := time.Now()
	for n := 0; ; n++ {
		err := fn()
		again := r.isRace(err) || r.isBlocked(err) && time.Since(began) < longest
		if !again || !pauseAfterRace(ctx, n) {
			return r.trouble(ctx, op, key, err)
		}
	}
}

// pauseAfterRace lets those who lost the same race part ways. It returns false
// if ctx ended.
func pauseAfterRace(ctx context.Context, n int) bool {
	longest := min(shortestPause<<min(n, 10), longestPause)
	return sleep(ctx, 1+rand.N(longest))
}

// sleep waits for d and returns false if ctx ended first.
func sleep(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err() == nil
	case <-ctx.Done():
		return false
	}
}
