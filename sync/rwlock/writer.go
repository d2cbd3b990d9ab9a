package rwlock

import (
	"context"
	"slices"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/engine"
)

// A writer marks the write leases of a LOCK_KEY. That distinguishes a write lease from a plain lease of the key, whose
// holder does not have the write lock, since it has not waited for readers.
type writer struct{ lockKey string }

// isWriter reports whether ctx carries a write lease that was not unlocked.
func (l *Lock) isWriter(ctx context.Context) bool {
	return slices.ContainsFunc(l.readers.Registry().LeasesFrom(ctx), func(lease *sqllock.Lease) bool {
		return engine.UseOf(lease).Mark().Load() == l.mark
	})
}

// markWriter makes lease a write lease.
func (l *Lock) markWriter(lease *sqllock.Lease) { engine.UseOf(lease).Mark().Store(l.mark) }
