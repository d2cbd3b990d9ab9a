package fair_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/sqllock/sqllock/internal/fair"
	"github.com/sqllock/sqllock/internal/test/check"
)

func TestPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m fair.Mutex[int]
		yes := func(int) bool { return true }
		if !m.TryLock(1) || m.Pass(1, yes) {
			t.Fatal("passed without a waiter")
		}
		got := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { got <- m.Lock(ctx, 2) }()
		synctest.Wait()
		if m.Pass(3, yes) || m.Pass(1, func(int) bool { return false }) || m.Owner() != 1 || m.Waiters() != 1 {
			t.Fatal("passed although not accepted")
		}
		// A waiter to which the mutex was passed owns it, even if its context has ended.
		passed := m.Pass(1, func(next int) bool {
			cancel()
			return next == 2
		})
		if err := <-got; !passed || err != nil || m.Owner() != 2 || m.Waiters() != 0 {
			t.Fatal(passed, err, m.Owner(), m.Waiters())
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
