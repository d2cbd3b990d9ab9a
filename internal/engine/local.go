package engine

import (
	"sync/atomic"
	"time"

	"github.com/sqllock/sqllock/internal/fair"
)

// A localLock is what all holds of one LOCK_KEY in a registry share: above all the queue of its callers.
type localLock struct {
	// Any goroutine may use these. But for usage, only the owner of mutex changes those that are atomic.

	mutex        fair.Mutex[*hold]
	share        fair.Share             // with other processes
	outage       atomic.Pointer[outage] // what the owner has met, if waiters wait through outages, or nil
	pinnedHolder atomic.Pointer[string] // of the row that its last attempt has found, if that lease was over: a transaction has it locked; or nil
	takenUntil   atomic.Int64           // when the lease may end that its last attempt has found, counted from when the registry was made
	usage        atomic.Int64           // how often the callers of this process acquire it: see usage

	// mu of [Locks] guards these.

	named  time.Duration // when its key was written to the table of names: see [Locks.namedAt]
	handle handle        // what [Locks.Obtain] returns: a hold knows no handle
}
