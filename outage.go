package sqllock

import (
	"context"
	"fmt"
	"time"

	"github.com/sqllock/sqllock/internal/bounded"
	"github.com/sqllock/sqllock/internal/jitter"
)

// longestOutagePause is the longest pause between two tries while the database fails.
const longestOutagePause = time.Second

// An outage is the time in which a waiter gets nothing but errors of the database. The zero
// value says that there is none.
type outage struct {
	began time.Time
	last  error
	pause time.Duration // before the last try
}

// add notes one more error.
func (o *outage) add(err error) {
	if o.last == nil {
		o.began = time.Now()
	}
	o.last = err
}

// sleep waits before the next try, each time twice as long, from idle to longestOutagePause.
// Waiters do not try in step. sleep returns false if ctx ended first.
func (o *outage) sleep(ctx context.Context, idle time.Duration) bool {
	o.pause = max(idle, min(2*o.pause, longestOutagePause))
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
