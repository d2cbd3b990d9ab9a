package sqllocktest_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/sqllocktest"
)

// ship is what the tests of the example test.
func ship(ctx context.Context, locks *sqllock.Registry, work func(context.Context) error) error {
	lock, err := locks.Obtain("orders/42")
	if err != nil {
		return err
	}
	return lock.ExecuteLockedFor(ctx, 0, work)
}

func TestShippingStopsWhenTheLockIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, nil)
		err := ship(t.Context(), locks.Registry, func(ctx context.Context) error {
			locks.Lose("orders/42") // another process has the lock now
			return ctx.Err()        // the code under test should not go on
		})
		if !errors.Is(err, sqllock.ErrLockLost) {
			t.Error(err)
		}
	})
}

func TestShippingLeavesAnOrderToAnother(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		locks := sqllocktest.New(t, &sqllock.RegistryOptions{NoRenew: true})
		if _, err := locks.Another().TryLock(t.Context(), "orders/42"); err != nil {
			t.Fatal(err)
		}
		never := func(context.Context) error { panic("it runs under another's lock") }
		if err := ship(t.Context(), locks.Registry, never); !errors.Is(err, sqllock.ErrNotAcquired) {
			t.Error(err)
		}
		time.Sleep(time.Minute) // as if the other process had crashed: nothing renews its lease, which expires; no real time passes
		if err := ship(t.Context(), locks.Registry, func(context.Context) error { return nil }); err != nil {
			t.Error(err)
		}
	})
}
