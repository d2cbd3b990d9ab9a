package engine

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
)

// longestOutagePause is the longest pause between two tries while the database fails.
const longestOutagePause = time.Second

// An outage is the time in which the waiters for a key get nothing but errors of the database.
// Nil says that there is none. The values are immutable: the first waiter in the queue stores
// another one with each error, and those behind it read it when their waits end.
type outage struct {
	began time.Time
	last  error
	pause time.Duration // before the next try
}

// after returns the outage after one more error. The pause before the next try is twice as long
// each time, from idle to longestOutagePause.
func (o *outage) after(err error, idle time.Duration) *outage {
	if o == nil {
		return &outage{began: time.Now(), last: err, pause: idle}
	}
	return &outage{began: o.began, last: err, pause: max(idle, min(2*o.pause, longestOutagePause))}
}

// sleep waits before the next try. Waiters for different keys do not try in step. sleep returns
// false if ctx ended first.
func (o *outage) sleep(ctx context.Context) bool {
	return bounded.Sleep(ctx, o.pause-jitter.N(o.pause/5+1))
}

// ended returns the error of a wait that ctx, the caller's, or a limit has ended in an outage.
func (o *outage) ended(ctx context.Context) error {
	err := fmt.Errorf("%w (for %v)", o.last, time.Since(o.began).Round(time.Millisecond))
	if cause := bounded.Ended(ctx); cause != nil {
		return fmt.Errorf("%w: %w", err, cause)
	}
	return err
}
