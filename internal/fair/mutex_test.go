package fair_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/fair"
	"github.com/sqllock/sqllock/internal/test/check"
)

type mutex = fair.Mutex[int]

func TestOthersCannotRelease(t *testing.T) {
	t.Parallel()
	var m mutex
	check.Must(t, m.Lock(t.Context(), 7))
	if m.Release(8) {
		t.Fatal("Release")
	}
	if m.Owner() != 7 {
		t.Fatal(m.Owner())
	}
}

func TestACancelledWaiterLeavesTheQueue(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m mutex
		check.Must(t, m.Lock(t.Context(), 1))
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		check.Is(t, m.Lock(ctx, 2), context.DeadlineExceeded)
		if m.Waiters() != 0 {
			t.Fatal(m.Waiters())
		}
		m.Release(1)
		if m.Owner() != 0 {
			t.Fatal("granted to a waiter that has left")
		}
		check.Is(t, m.Lock(ctx, 3), context.DeadlineExceeded)
	})
}

// TestHammer looks for lost wake-ups and double owners while waiters give up at random
// times.
func TestHammer(t *testing.T) {
	t.Parallel()
	var m mutex
	var inside, grants, failures int
	each := 500
	if testing.Short() {
		each = 100
	}
	var group sync.WaitGroup
	for o := 1; o <= 16; o++ {
		group.Go(func() {
			for i := range each {
				ctx, cancel := context.WithTimeout(t.Context(), time.Duration(i%7)*20*time.Microsecond)
				if i%3 == 0 {
					cancel()
					ctx, cancel = context.WithCancel(t.Context())
				}
				if err := m.Lock(ctx, o); err == nil {
					grants++ // the mutex protects it
					if inside++; inside != 1 {
						failures++
					}
					inside--
					m.Release(o)
				}
				cancel()
			}
		})
	}
	group.Wait()
	if failures != 0 || grants == 0 || m.Owner() != 0 || m.Waiters() != 0 {
		t.Fatal(failures, grants, m.Owner(), m.Waiters())
	}
}
