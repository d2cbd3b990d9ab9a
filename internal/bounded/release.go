package bounded

import (
	"context"
	"time"
)

type releaseKey struct{}

// ReleaseBy returns a context with which a lease is unlocked whose caller does not wait for the outcome
// for longer than until an instant. If the row could not be deleted by then, that is left to the next
// acquisition.
func ReleaseBy(ctx context.Context, by time.Time) context.Context {
	return context.WithValue(ctx, releaseKey{}, by)
}

// ReleaseEnd returns the instant of [ReleaseBy]. ok is false if ctx has none.
func ReleaseEnd(ctx context.Context) (by time.Time, ok bool) {
	by, ok = ctx.Value(releaseKey{}).(time.Time)
	return by, ok
}
