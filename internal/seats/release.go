package seats

import (
	"context"
	"sync"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/bounded"
)

const (
	// releaseTimeout is how long a caller waits for a row to be released that it does not get.
	releaseTimeout = time.Second
	// allReleases is how long after the end of its wait it does so, if there are several.
	allReleases = 1200 * time.Millisecond
	// shortestRelease is how long each release has all the same.
	shortestRelease = 50 * time.Millisecond
)

// An end is when a call's wait has ended. The context of the wait carries it.
type end struct {
	mu sync.Mutex
	at time.Time // or zero
}

type endKey struct{}

func (e *end) note() {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.at = time.Now()
}

// left returns how long releases may still take.
func (e *end) left() time.Duration {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.at.IsZero() {
		return releaseTimeout
	}
	return time.Until(e.at.Add(allReleases))
}

// Release unlocks a lease that the caller of a call does not get, or that has served its purpose. It
// does not wait for as long as the lease lasts: the caller wants to know that it has waited in vain. A
// row that could not be deleted in time is deleted before this process acquires it again, and
// expires. waiting is the context of the call's wait.
func Release(waiting context.Context, lease *sqllock.Lease) {
	_ = release(waiting, lease) // see above
}

func release(waiting context.Context, lease *sqllock.Lease) error {
	left := releaseTimeout
	if e, ok := waiting.Value(endKey{}).(*end); ok {
		left = min(left, e.left())
	}
	return lease.Unlock(bounded.ReleaseBy(waiting, time.Now().Add(max(left, shortestRelease))))
}
