package fair_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock/internal/fair"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

func TestMain(m *testing.M) { testmain.Run(m) }

type mutex = fair.Mutex[int]

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
	var group sync.WaitGroup
	for o := 1; o <= 16; o++ {
		group.Go(func() {
			for i := range 500 {
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

func TestPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m fair.Mutex[int]
		yes := func(int) bool { return true }
		if !m.TryLock(1) || m.Pass(1, yes) != nil {
			t.Fatal("passed without a waiter")
		}
		got := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { got <- m.Lock(ctx, 2) }()
		synctest.Wait()
		if m.Pass(3, yes) != nil || m.Pass(1, func(int) bool { return false }) != nil || m.Owner() != 1 || m.Waiters() != 1 {
			t.Fatal("passed although not accepted")
		}
		// A waiter to which the mutex was passed owns it, even if its context has ended. Its Lock returns once it is granted.
		grant := m.Pass(1, func(next int) bool {
			cancel()
			return next == 2
		})
		synctest.Wait()
		if grant == nil || m.Owner() != 2 || m.Waiters() != 0 || len(got) != 0 {
			t.Fatal(grant != nil, m.Owner(), m.Waiters(), len(got))
		}
		grant()
		if err := <-got; err != nil || m.Owner() != 2 {
			t.Fatal(err, m.Owner())
		}
		if !m.Release(2) {
			t.Fatal("the new owner cannot release it")
		}
	})
}

// Those that wait first come before the others, and each in the order of their arrival.
func TestLockFirst(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m fair.Mutex[int]
		m.TryLock(9)
		var order []int
		var waiting sync.WaitGroup
		for owner := range 6 {
			lock := m.Lock
			if owner >= 2 && owner%2 == 0 {
				lock = m.LockFirst
			}
			waiting.Go(func() {
				check.Is(t, lock(t.Context(), owner+1), nil)
				order = append(order, owner+1) // one at a time
				m.Release(owner + 1)
			})
			synctest.Wait()
		}
		m.Release(9)
		waiting.Wait()
		check.Same(t, "order", order, []int{3, 5, 1, 2, 4, 6})
	})
}
