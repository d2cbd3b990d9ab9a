package seats

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/engine"
)

// releaseTimeout is how long the release of a row may take that its caller does not get.
const releaseTimeout = time.Second

// Release unlocks a lease that the caller of a call does not get, or that has served its purpose. Once
// waiting, the context of the call's wait, has ended it returns a moment later: the caller wants to know
// that it has waited in vain. A row that could not be deleted in time is deleted before this process
// acquires it again, and expires.
func Release(waiting context.Context, lease *sqllock.Lease) {
	_ = release(waiting, lease) // see above
}

func release(waiting context.Context, lease *sqllock.Lease) error {
	return engine.UseOf(lease).Unlock(waiting, time.Now().Add(releaseTimeout))
}
