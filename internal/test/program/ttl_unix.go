//go:build unix

package program

import (
	"testing"
	"time"
)

// WithTTL calls try with a time-to-live, and again with twice the last until try returns true: the machine was fast
// enough for it. try must fail the test for whatever else goes wrong, so that the result does not depend on the
// machine's speed. It fails the test if even a time-to-live of two minutes was too short.
func WithTTL(t *testing.T, ttl time.Duration, try func(ttl time.Duration) (longEnough bool)) {
	t.Helper()
	const longest = 2 * time.Minute
	for !try(ttl) {
		if t.Logf("a time-to-live of %v was too short", ttl); ttl > longest {
			t.Fatal("no time-to-live was long enough")
		}
		ttl *= 2
	}
}
