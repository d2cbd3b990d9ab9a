package bounded

import (
	"context"
	"time"
)

type releaseKey struct{}

// ReleaseBy returns a context with which a lease is unlocked whose row is to be deleted until an instant. Its
// caller waits for that until ctx ends, and for a [Grace] longer. A row that could not be deleted is left to
// the next acquisition.
func ReleaseBy(ctx context.Context, by time.Time) context.Context {
	return context.WithValue(ctx, releaseKey{}, by)
}

// ReleaseEnd returns the instant of [ReleaseBy]. ok is false if ctx has none.
func ReleaseEnd(ctx context.Context) (by time.Time, ok bool) {
	by, ok = ctx.Value(releaseKey{}).(time.Time)
	return by, ok
}
