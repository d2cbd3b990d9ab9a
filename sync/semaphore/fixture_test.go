package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	fixtures "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/sync/semaphore"
)

func TestMain(m *testing.M) { testmain.Run(m) }

const (
	ttl  = 10 * time.Second
	idle = 100 * time.Millisecond
	key  = "printers"
)

// A fixture adds semaphores to the common one.
type fixture struct{ *fixtures.Fixture }

var (
	bubbles = fixtures.Bubbles[*fixture](func(f *fixtures.Fixture) *fixture { return &fixture{f} })

	inBubble, runInBubble, inBothLayouts = bubbles.In, bubbles.Run, bubbles.InBothLayouts
)

// registry returns the registry of a process whose client id is name, with readable rows.
func (f *fixture) registry(name string) *sqllock.Registry {
	f.Helper()
	return f.registryOn(f.DB.DB, name, sqllock.RegistryOptions{})
}

func (f *fixture) registryOn(db *sqlx.DB, name string, opts sqllock.RegistryOptions) *sqllock.Registry {
	f.Helper()
	opts.TTL, opts.IdleBetweenTries, opts.NoRenew = ttl, idle, true
	return f.Registry(db, sqllock.RepositoryOptions{ClientID: name, Keys: sqllock.PlainKeys, TTL: ttl}, opts)
}

// networked returns the registry of a process whose statements follow a plan.
func (f *fixture) networked() (*sqllock.Registry, *flaky.Connector) {
	f.Helper()
	db, network := f.Network()
	return f.registryOn(db, "a", sqllock.RegistryOptions{}), network
}

// process returns the semaphore of a process.
func (f *fixture) process(name string, permits int) *semaphore.Semaphore {
	f.Helper()
	return f.semaphore(f.registry(name), permits)
}

func (f *fixture) semaphore(registry *sqllock.Registry, permits int) *semaphore.Semaphore {
	f.Helper()
	return check.Value(semaphore.New(registry, key, permits))(f)
}

// acquires acquires n permits that are free.
func (f *fixture) acquires(s *semaphore.Semaphore, n int) *sqllock.Lease {
	f.Helper()
	return check.Value(s.TryAcquire(f.Context(), n))(f)
}

// refuses checks that no permit is free.
func (f *fixture) refuses(s *semaphore.Semaphore) {
	f.Helper()
	_ = f.refusal(s, 1)
}

// refusal checks that n permits are not free, and returns why.
func (f *fixture) refusal(s *semaphore.Semaphore, n int) *sqllock.HeldError {
	f.Helper()
	lease, err := s.TryAcquire(f.Context(), n)
	var held *sqllock.HeldError
	if lease != nil || !errors.As(err, &held) {
		f.Fatalf("lease of %v, error %v", lease.Keys(), err)
	}
	return held
}

// A waiter is a call of Acquire that waits.
type waiter struct {
	cancel context.CancelCauseFunc
	lease  *sqllock.Lease
	err    error
	done   chan struct{} // closed when it has returned
}

// starts calls Acquire in a goroutine, and returns when all is at rest.
func (f *fixture) starts(s *semaphore.Semaphore, n int) *waiter {
	f.Helper()
	ctx, cancel := context.WithCancelCause(f.Context())
	w := &waiter{cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		w.lease, w.err = s.Acquire(ctx, n)
	}()
	f.Cleanup(func() {
		cancel(nil)
		<-w.done
		if w.lease != nil {
			_ = w.lease.Unlock(context.Background())
		}
	})
	synctest.Wait()
	return w
}

// waits checks that a waiter has not returned.
func (f *fixture) waits(w *waiter) {
	f.Helper()
	select {
	case <-w.done:
		f.Fatalf("it does not wait: %v", w.err)
	default:
	}
}

// rows returns what is in the table: LOCK_KEYs, in their order.
func (f *fixture) rows() (keys []string) {
	f.Helper()
	f.Must(f.DB.DB.SelectContext(f.Context(), &keys, "SELECT TRIM(LOCK_KEY) FROM INT_LOCK ORDER BY LOCK_KEY"))
	return keys
}

// has checks what is in the table.
func (f *fixture) has(keys ...string) {
	f.Helper()
	if got := f.rows(); fmt.Sprint(got) != fmt.Sprint(keys) {
		f.Fatalf("the table has %q, want %q", got, keys)
	}
}
