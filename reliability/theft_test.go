//go:build linux

package reliability

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
)

// TestTheft removes the holder's row by force, or puts another's in its place.
// Nothing can stop that, but the next heartbeat tells the holder, who must then
// leave the thief's row alone.
func TestTheft(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "theft", "database, driver", "row", "trials", "noticed after: shortest", "median", "longest")
	each(t, servers, func(t *testing.T, place int, c cell) {
		b := c.newBase(t)
		for i, how := range []string{"deleted", "stolen"} {
			var all outcome
			t.Run(how, func(t *testing.T) {
				t.Cleanup(func() {
					least, median, greatest := spread(all.gaps)
					figures.add(2*place+i, c.name, how, len(all.gaps), least, median, greatest)
				})
				for n := range size(2, 50) {
					t.Run(fmt.Sprint(n), func(t *testing.T) {
						t.Parallel()
						all.add(b.theft(t, how), false)
					})
				}
			})
		}
	})
}

// theft returns how long the holder knew nothing.
func (b *base) theft(t *testing.T, how string) time.Duration {
	t.Helper()
	const ttl = 6 * time.Second
	lease := acquire(t, b.renewing(t, b.db, ttl), t.Name())
	ended := awaitEnd(lease)
	pause(t.Context(), rand.N(ttl/3))
	thief := b.repository(t, b.db)
	deleted, err := thief.Delete(t.Context(), lease.Key(), lease.Holder())
	if err != nil || !deleted {
		t.Fatal(deleted, err)
	}
	at := time.Now()
	var stolen sqllock.Acquisition
	holder := thief.NewHolder()
	if how == "stolen" {
		stolen, err = thief.Acquire(t.Context(), lease.Key(), holder, time.Minute)
		if err != nil || !stolen.Acquired {
			t.Fatal(stolen, err)
		}
	}
	unaware := lease.Deadline()
	told := <-ended
	lost(t, "cause", context.Cause(lease.Context()))
	if !told.Before(unaware) {
		t.Errorf("told %v after the deadline", told.Sub(unaware))
	}
	b.afterLoss(t, lease)
	if how == "stolen" {
		held, err := thief.IsAcquired(t.Context(), lease.Key(), holder)
		if err != nil || !held {
			t.Errorf("the thief's row: %t, %v", held, err)
		}
	}
	return told.Sub(at)
}
