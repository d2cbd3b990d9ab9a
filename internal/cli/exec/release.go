package exec

import (
	"errors"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/cli/exit"
)

// release releases the lease, so that the lock is free when atLeast has passed since it
// was acquired. It reports whether the lock was lost before. After any other error the
// row expires by itself; the work done under the lock stays valid.
func (x *execution) release(lease *sqllock.Lease, atLeast time.Duration) (lost bool) {
	ctx := lease.Context() // Unlock also works when it has ended
	_, err := answered(ctx, answerTimeout, func() (struct{}, error) {
		if atLeast > 0 {
			return struct{}{}, lease.UnlockAfter(ctx, atLeast)
		}
		return struct{}{}, lease.Unlock(ctx)
	})
	switch {
	case err == nil:
		x.verbosef("released %q", x.key)
	case errors.Is(err, sqllock.ErrLockLost):
		return true
	default:
		x.printf("release %q: %s; it becomes free when its lease ends", x.key, exit.Text(err))
	}
	return false
}
