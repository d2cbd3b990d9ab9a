package named_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/internal/named"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/sqllocktest"
)

func TestMain(m *testing.M) { testmain.Run(m) }

var (
	must = check.Must
	is   = check.Is
)

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, test func(t *testing.T, r *sqllocktest.Registry)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) { test(t, sqllocktest.New(t, nil)) })
}

// TestALeaseIsRenewedUntilItIsUnlocked holds a lock for minutes, with a context that has ended.
func TestALeaseIsRenewedUntilItIsUnlocked(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		mine, others := named.New(r.Registry, "app/"), named.New(r.Another(), "app/")
		ctx, cancel := context.WithCancel(t.Context())
		must(t, mine.Lock(ctx, "k"))
		cancel()
		if held := r.Held(); len(held) != 1 || held[0].Key != "app/k" {
			t.Errorf("%+v", held)
		}
		time.Sleep(5 * time.Minute)
		is(t, others.TryLock(t.Context(), "k"), sqllock.ErrNotAcquired)
		must(t, mine.Renew(t.Context(), "k"))
		must(t, mine.Unlock(ctx, "k"))
		must(t, others.TryLock(t.Context(), "k"))
		must(t, others.Unlock(t.Context(), "k"))
	})
}

// TestNamesAreSeparate holds two names at once.
func TestNamesAreSeparate(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		locks := named.New(r.Registry, "")
		must(t, locks.Lock(t.Context(), "a"))
		must(t, locks.Lock(t.Context(), "b"))
		must(t, locks.Unlock(t.Context(), "a"))
		is(t, locks.Unlock(t.Context(), "a"), sqllock.ErrNotHeld)
		is(t, locks.Renew(t.Context(), "a"), sqllock.ErrNotHeld)
		must(t, locks.Renew(t.Context(), "b"))
		must(t, locks.Unlock(t.Context(), "b"))
	})
}

// TestALostLeaseDoesNotCostTheNextOne has a caller that has lost its lease unlock while the next
// caller of its process holds the lock.
func TestALostLeaseDoesNotCostTheNextOne(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		locks, others := named.New(r.Registry, ""), named.New(r.Another(), "")
		must(t, locks.Lock(t.Context(), "k"))
		r.Lose("k")
		must(t, locks.Lock(t.Context(), "k"))                           // when the other's time has passed
		must(t, locks.Renew(t.Context(), "k"))                          // the second caller's
		is(t, locks.Unlock(t.Context(), "k"), sqllock.ErrLockLost)      // the first caller
		is(t, others.TryLock(t.Context(), "k"), sqllock.ErrNotAcquired) // the second holds it
		must(t, locks.Renew(t.Context(), "k"))
		must(t, locks.Unlock(t.Context(), "k"))
		must(t, others.TryLock(t.Context(), "k"))
		must(t, others.Unlock(t.Context(), "k"))
	})
}

// TestRenewAcquiresALostLockAgain renews while the other process has the lock, and later.
func TestRenewAcquiresALostLockAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		locks, others := named.New(r.Registry, ""), named.New(r.Another(), "")
		must(t, locks.Lock(t.Context(), "k"))
		r.Lose("k")
		err := locks.Renew(t.Context(), "k")
		is(t, err, sqllock.ErrLockLost)
		is(t, err, sqllock.ErrNotAcquired)
		time.Sleep(2 * sqllock.DefaultTTL) // the other's row expires
		must(t, locks.Renew(t.Context(), "k"))
		is(t, others.TryLock(t.Context(), "k"), sqllock.ErrNotAcquired)
		must(t, locks.Unlock(t.Context(), "k"))
		is(t, locks.Unlock(t.Context(), "k"), sqllock.ErrNotHeld)
		must(t, others.TryLock(t.Context(), "k"))
		must(t, others.Unlock(t.Context(), "k"))
	})
}

// A hookedContext calls a function the first time that it is asked for a value: by TryLock, which
// looks for the lease that it carries.
type hookedContext struct {
	context.Context

	hook func()
}

func (c *hookedContext) Value(key any) any {
	if hook := c.hook; hook != nil {
		c.hook = nil
		hook()
	}
	return c.Context.Value(key)
}

// TestUnlockWhileRenewAcquires has Unlock come while Renew acquires a lost lock again: it must not
// stay held.
func TestUnlockWhileRenewAcquires(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		locks := named.New(r.Registry, "")
		must(t, locks.Lock(t.Context(), "k"))
		r.Lose("k")
		time.Sleep(2 * sqllock.DefaultTTL) // the other's row expires
		unlocked := false
		ctx := &hookedContext{t.Context(), func() {
			unlocked = true
			is(t, locks.Unlock(t.Context(), "k"), sqllock.ErrLockLost)
		}}
		is(t, locks.Renew(ctx, "k"), sqllock.ErrLockLost)
		if held := r.Held(); !unlocked || len(held) != 0 {
			t.Errorf("unlocked: %t, held: %+v", unlocked, held)
		}
	})
}

func TestErrors(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry) {
		locks := named.New(r.Registry, "")
		is(t, locks.Lock(t.Context(), ""), sqllock.ErrInvalid)
		is(t, named.New(nil, "").Lock(t.Context(), "k"), sqllock.ErrInvalid)
		cutOff := errors.New("cut off")
		r.Break(cutOff)
		is(t, locks.Lock(t.Context(), "k"), cutOff)
		r.Break(nil)
		is(t, locks.Unlock(t.Context(), "k"), sqllock.ErrNotHeld)
	})
}
