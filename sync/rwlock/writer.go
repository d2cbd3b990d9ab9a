package rwlock

import (
	"context"
	"slices"
	"sync/atomic"

	"github.com/sqllock/sqllock"
)

// A writerKey is the key under which the context of a write lease carries its writer. That tells a
// write lease from a plain lease of the key, whose holder does not have the write lock, since it has
// not waited for readers.
type writerKey struct {
	registry *sqllock.Registry
	lockKey  string
}

// A writer is a call that acquires the write lock.
type writer struct {
	lease atomic.Pointer[sqllock.Lease] // nil until the call has the write lock
}

// withWriter returns a context that carries a new writer.
func (l *Lock) withWriter(ctx context.Context) (context.Context, *writer) {
	w := new(writer)
	return context.WithValue(ctx, l.mark, w), w
}

// isWriter reports whether ctx carries a write lease that was not unlocked.
func (l *Lock) isWriter(ctx context.Context) bool {
	w, ok := ctx.Value(l.mark).(*writer)
	return ok && slices.Contains(l.readers.Registry().LeasesFrom(ctx), w.lease.Load())
}
