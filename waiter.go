package sqllock

import (
	"cmp"
	"context"
	"slices"
	"strings"
	"time"

	"github.com/sqllock/sqllock/internal/clientid"
)

// A Waiter is a registry of some process whose callers have waited for a lock for longer than five seconds.
type Waiter struct {
	// Region and LockKey are those of the lock, which may have no row.
	Region, LockKey string
	// Key is the user's key as it was written, or "" if it is not known.
	Key string
	// ClientID is what the CLIENT_IDs of the process begin with.
	ClientID string
	// Process is the process, the zero value if it is not known.
	Process Process
	// Waited is how long the caller has waited that came first, and Callers how many have waited for that long.
	Waited  time.Duration
	Callers int
}

// Waiters returns which processes wait for which locks for long, of every region: by region and LOCK_KEY, those that have
// waited for longest first. They are read from the table of names, to which a registry writes them within ten seconds,
// and again every five seconds: see [RegistryOptions].Application. A process that has been killed is among them for half
// a minute. Each registry writes about twenty locks: those that it has waited for longest.
//
// There are none if the table of names is missing or cannot be read, and none of registries with
// [RegistryOptions].DisableNames, of candidates of an election, and of other programs.
func (r *Repository) Waiters(ctx context.Context) []Waiter {
	read, names := r.table.Names.Waits(ctx)
	waiters := make([]Waiter, len(read))
	for i, w := range read {
		waiters[i] = Waiter{
			Region: w.Region, LockKey: w.LockKey, Key: names.Key(w.Row()), ClientID: clientid.Of(w.Holder),
			Process: parseProcess(names.Process(w.Row())), Waited: w.Waited, Callers: w.Callers,
		}
	}
	slices.SortFunc(waiters, func(a, b Waiter) int {
		return cmp.Or(strings.Compare(a.Region, b.Region), strings.Compare(a.LockKey, b.LockKey), cmp.Compare(b.Waited, a.Waited), strings.Compare(a.ClientID, b.ClientID))
	})
	return waiters
}
