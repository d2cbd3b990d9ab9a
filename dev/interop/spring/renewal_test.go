//go:build interop

package spring_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dev/interop/spring/javaclient"
	"github.com/sqllock/sqllock/internal/test/check"
)

var (
	// beyond is longer than a short lease that is not renewed.
	beyond = 2 * short
	// pause is the time between two renewals.
	pause = short / 20
)

// TestJavaRenews checks that Java's renewals exclude sqllock for longer than the time-to-live.
func TestJavaRenews(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		java := c.java(t, javaclient.Settings{TTL: short}).Thread("a")
		ours := c.lock(t, short)
		must(t, java.Lock(ctx, key))
		held := make(chan error, 1)
		go func() {
			// Twice as long, so that Java still holds the lock when the wait ends.
			renewals, err := java.Hold(ctx, key, beyond+short/2, pause)
			if err == nil && renewals < 2 {
				err = errors.New("hardly a renewal")
			}
			held <- err
		}()
		if lease, err := ours.TryLockFor(ctx, beyond); !errors.Is(err, sqllock.ErrNotAcquired) {
			t.Errorf("we got a lock that Java renews: %v, %v", lease, err)
		}
		must(t, <-held)
		must(t, java.Unlock(ctx, key))
		must(t, check.Value(ours.TryLock(ctx))(t).Unlock(ctx))
	})
}

// TestWeRenewBesideJavaThatPolls checks that AutoRenew keeps a lease while Java services poll for
// the lock without a pause. Each of their tries locks the row for a short time: UPDATE, then
// INSERT.
func TestWeRenewBesideJavaThatPolls(t *testing.T) {
	t.Parallel()
	eachMigrated(t, func(t *testing.T, c *cell) {
		ctx := patiently(t)
		registry := check.Value(sqllock.NewRegistry(c.repository(t, short), &sqllock.RegistryOptions{TTL: short}))(t)
		lock := check.Value(registry.Obtain(key))(t)
		lease := check.Value(lock.Lock(ctx))(t)
		var polling sync.WaitGroup
		for range 8 {
			java := c.javaIn(t, shared(t, c.generation), javaclient.Settings{TTL: short, Idle: time.Millisecond, Pool: 1}).Thread("a")
			polling.Go(func() {
				if locked, err := java.TryLock(ctx, key, beyond); locked || err != nil {
					t.Errorf("Java: %v, %v", locked, err)
				}
			})
		}
		polling.Wait()
		must(t, lease.Context().Err())
		must(t, lease.Unlock(ctx))
		must(t, registry.Close(ctx))
	})
}
