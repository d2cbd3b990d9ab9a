package report

import (
	"context"
	"strings"
)

// seatOf is the key under which a context has what [Seats] has put there.
type seatOf struct{}

// A lock has the rows whose keys begin with prefix.
type lock struct{ key, prefix string }

// Seats returns a context whose calls may ask for permits, readers and the turn of a lock: keys that begin with prefix. The
// context may be that of a lease.
func Seats(ctx context.Context, key, prefix string) context.Context {
	return context.WithValue(ctx, seatOf{}, lock{key, prefix})
}

// LockOf returns the key, as a caller wrote it, of the lock that an event of ctx is about: of a permit, a reader or the turn, whose
// keys begin with a LOCK_KEY, that of the semaphore or the read-write lock.
func LockOf(ctx context.Context, key string) string {
	if l, ok := ctx.Value(seatOf{}).(lock); ok && strings.HasPrefix(key, l.prefix) {
		return l.key
	}
	return key
}
