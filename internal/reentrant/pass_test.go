package reentrant_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/sqllock/sqllock/internal/reentrant"
)

func TestPass(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var m reentrant.Mutex[int]
		yes := func(int) bool { return true }
		if _, ok := m.TryLock(1); !ok || m.Pass(1, yes) {
			t.Fatal("passed without a waiter")
		}
		got := make(chan error, 1)
		ctx, cancel := context.WithCancel(t.Context())
		go func() { _, err := m.Lock(ctx, 2); got <- err }()
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
		if depth, ok := m.Leave(2); depth != 0 || !ok || !m.Release(2) {
			t.Fatal("the depth of the new owner is not 1")
		}
	})
}
