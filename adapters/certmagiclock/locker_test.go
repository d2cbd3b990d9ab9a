package certmagiclock_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/adapters/certmagiclock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/sqllocktest"
)

var (
	must = check.Must
	is   = check.Is
)

// The interfaces of certmagic v0.25.6.
type (
	locker interface {
		Lock(ctx context.Context, name string) error
		Unlock(ctx context.Context, name string) error
	}
	tryLocker interface {
		TryLock(ctx context.Context, name string) (bool, error)
		Unlock(ctx context.Context, name string) error
	}
	lockLeaseRenewer interface {
		RenewLockLease(ctx context.Context, lockKey string, leaseDuration time.Duration) error
	}
)

var (
	_ locker           = (*certmagiclock.Locker)(nil)
	_ tryLocker        = (*certmagiclock.Locker)(nil)
	_ lockLeaseRenewer = (*certmagiclock.Locker)(nil)
)

const name = "issue_cert_example.com"

// inBubble runs a test in virtual time, with the lockers of two instances.
func inBubble(t *testing.T, test func(t *testing.T, r *sqllocktest.Registry, first, second *certmagiclock.Locker)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		r := sqllocktest.New(t, nil)
		test(t, r, certmagiclock.New(r.Registry, "certmagic/"), certmagiclock.New(r.Another(), "certmagic/"))
	})
}

// TestOneInstanceObtainsACertificate takes many times the time-to-live.
func TestOneInstanceObtainsACertificate(t *testing.T) {
	inBubble(t, func(t *testing.T, _ *sqllocktest.Registry, first, second *certmagiclock.Locker) {
		must(t, first.Lock(t.Context(), name))
		for range 8 {
			must(t, first.RenewLockLease(t.Context(), name, 6*time.Hour))
			time.Sleep(15 * time.Second)
			if ok, err := second.TryLock(t.Context(), name); ok || err != nil {
				t.Fatal(ok, err)
			}
		}
		must(t, first.Unlock(t.Context(), name))
		if ok, err := second.TryLock(t.Context(), name); !ok || err != nil {
			t.Fatal(ok, err)
		}
		must(t, second.Unlock(t.Context(), name))
	})
}

// TestALossIsReported takes the lock away, for longer than the loser works.
func TestALossIsReported(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry, first, _ *certmagiclock.Locker) {
		must(t, first.Lock(t.Context(), name))
		r.Lose("certmagic/" + name)
		is(t, first.RenewLockLease(t.Context(), name, time.Minute), sqllock.ErrLockLost)
		is(t, first.Unlock(t.Context(), name), sqllock.ErrLockLost)
		is(t, first.Unlock(t.Context(), name), sqllock.ErrNotHeld)
		is(t, first.RenewLockLease(t.Context(), name, time.Minute), sqllock.ErrNotHeld)
	})
}

// TestALostLockIsAcquiredAgain takes the lock away, and has the other holder's row expire.
func TestALostLockIsAcquiredAgain(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry, first, second *certmagiclock.Locker) {
		must(t, first.Lock(t.Context(), name))
		r.Lose("certmagic/" + name)
		time.Sleep(2 * sqllock.DefaultTTL)
		must(t, first.RenewLockLease(t.Context(), name, time.Minute))
		if ok, err := second.TryLock(t.Context(), name); ok || err != nil {
			t.Error(ok, err)
		}
		must(t, first.Unlock(t.Context(), name))
	})
}

// TestTryLockDistinguishesHeldFromFailed has a lock that is held, a context that has ended, and a
// database that fails.
func TestTryLockDistinguishesHeldFromFailed(t *testing.T) {
	inBubble(t, func(t *testing.T, r *sqllocktest.Registry, first, second *certmagiclock.Locker) {
		must(t, first.Lock(t.Context(), name))
		ok, err := second.TryLock(t.Context(), name)
		if ok || err != nil {
			t.Error(ok, err)
		}
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		ok, err = second.TryLock(ended, name)
		is(t, err, context.Canceled)
		cutOff := errors.New("cut off")
		r.Break(cutOff)
		ok2, err := second.TryLock(t.Context(), name)
		is(t, err, cutOff)
		if ok || ok2 {
			t.Error("acquired after an error")
		}
		r.Break(nil)
		must(t, first.Unlock(t.Context(), name))
	})
}
