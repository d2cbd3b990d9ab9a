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

// TestForcedDeletion deletes the holder's row by force, or replaces it with the row of another
// client. sqllock cannot prevent this, but the next heartbeat must detect it, and the former
// holder must not touch the other client's row.
func TestForcedDeletion(t *testing.T) {
	inParallel(t)
	figures := newTable(t, "forced", "database, driver", "row", "trials", "noticed after: shortest", "median", "longest")
	each(t, servers, func(t *testing.T, place int, c cell) {
		b := c.newBase(t)
		for i, how := range []string{"deleted", "replaced"} {
			var all outcome
			t.Run(how, func(t *testing.T) {
				t.Cleanup(func() {
					least, median, greatest := spread(all.gaps)
					figures.add(2*place+i, c.name, how, len(all.gaps), least, median, greatest)
				})
				for n := range size(2, 50) {
					t.Run(fmt.Sprint(n), func(t *testing.T) {
						t.Parallel()
						withTTL(t, 6*time.Second, func(ttl time.Duration) bool {
							gap, inTime := b.forced(t, how, ttl)
							if inTime {
								all.add(gap, false)
							}
							return inTime
						})
					})
				}
			})
		}
	})
}

// forced returns how long it took until the holder's lease ended, and whether that was before its
// deadline: a heartbeat has noticed the deletion.
func (b *base) forced(t *testing.T, how string, ttl time.Duration) (gap time.Duration, inTime bool) {
	t.Helper()
	lease := acquire(t, b.renewing(t, b.db, ttl), fmt.Sprint(t.Name(), ttl))
	ended := awaitEnd(lease)
	pause(t.Context(), rand.N(ttl/3))
	other := b.repository(t, b.db)
	deleted, err := other.Delete(t.Context(), lease.Key(), lease.Holder())
	must(t, err)
	if !deleted {
		lost(t, "a row that nobody has deleted", context.Cause(lease.Context()))
		return 0, false
	}
	at := time.Now()
	var replaced sqllock.Acquisition
	holder := other.NewHolder()
	if how == "replaced" {
		replaced, err = other.Acquire(t.Context(), lease.Key(), holder, time.Hour)
		if err != nil || !replaced.Acquired {
			t.Fatal(replaced, err)
		}
	}
	deadline := lease.Deadline()
	endedAt := <-ended
	lost(t, "cause", context.Cause(lease.Context()))
	b.afterLoss(t, lease)
	if how == "replaced" {
		held, err := other.IsAcquired(t.Context(), lease.Key(), holder)
		if err != nil || !held {
			t.Errorf("the other client's row: %t, %v", held, err)
		}
	}
	return endedAt.Sub(at), endedAt.Before(deadline)
}
