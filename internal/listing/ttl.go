package listing

import (
	"context"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/locktable"
)

// ReadTTLs sets TTL of locks that the repository has just read, by one statement: of those that are held, and whose processes
// have told the table of names of their leases.
func ReadTTLs(ctx context.Context, r *sqllock.Repository, locks []Lock) {
	rows := make([]locktable.Row, len(locks))
	for i, l := range locks {
		rows[i] = locktable.Row{Region: l.Region, LockKey: l.LockKey, Holder: l.Row.Holder, Age: l.Age, Left: l.Left}
		if l.Kept() {
			rows[i].Holder = "" // nobody renews it
		}
	}
	for i, ttl := range engine.TableOf(r).Names.TTLs(ctx, rows) {
		locks[i].TTL = ttl
	}
}

// Renewed returns how long ago the lease was renewed, or acquired if it was not renewed yet. ok is false if that is not known.
func (l Lock) Renewed() (ago time.Duration, ok bool) {
	if l.TTL == 0 || l.Expired() {
		return 0, false
	}
	return max(l.TTL-l.Left, 0), true
}

// Overdue reports whether the lease was not renewed for longer than half of its time-to-live. Holders renew after
// a third of it: this one is stopped or cut off from the database, or a transaction has the row pinned.
func (l Lock) Overdue() bool {
	ago, ok := l.Renewed()
	return ok && ago > l.TTL/2
}
