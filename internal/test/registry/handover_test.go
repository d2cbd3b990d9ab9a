package registry_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
)

// An askingContext asks something whenever it is asked.
type askingContext struct {
	context.Context //nolint:containedctx // it is one

	ask func()
}

func (c askingContext) Done() <-chan struct{} {
	c.ask()
	return c.Context.Done()
}

// The contexts of a lease that is handed over end while no mutex is held: what they were made of may be the context of another lease
// whose time is up, and its observer may call the registry, about this key, too.
func TestHandOver_ContextsMayAskTheRegistry(t *testing.T) {
	t.Parallel()
	s := newFixture(t, sqllock.Autocommit)
	r := newRegistry(t, s.repository, &sqllock.RegistryOptions{NoRenew: true, HandOff: true})
	lock := obtain(t, r, "k")
	var unlocking, asked atomic.Bool
	ctx := askingContext{t.Context(), func() {
		if unlocking.Load() {
			asked.Store(true)
			is(t, check.ErrorOf(lock.TryLock(t.Context())), sqllock.ErrNotAcquired)
		}
	}}
	first := check.Value(lock.Lock(ctx))(t)
	second := check.Begin(func() error {
		lease, err := lock.Lock(t.Context())
		is(t, lease.Unlock(t.Context()), nil)
		return err
	})
	for r.Waiting()["k"] == 0 {
		time.Sleep(time.Millisecond)
	}
	unlocking.Store(true)
	unlocked := check.Begin(func() error { return first.Unlock(t.Context()) })
	select {
	case err := <-unlocked:
		must(t, err)
	case <-time.After(time.Minute):
		t.Fatal("Unlock waits for itself")
	}
	unlocking.Store(false)
	is(t, <-second, nil)
	if !asked.Load() {
		t.Error("the context was not asked")
	}
}
