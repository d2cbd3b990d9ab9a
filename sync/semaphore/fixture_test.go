package semaphore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/sync/semaphore"
)

const (
	ttl  = 10 * time.Second
	idle = 100 * time.Millisecond
	key  = "printers"
)

// A fixture is what one test works with: a database in virtual time, and processes on it.
type fixture struct {
	*testing.T
	db *dbtest.DB
}

// inBubble runs a test in virtual time.
func inBubble(t *testing.T, test func(f *fixture)) {
	t.Helper()
	inBubbleWith(t, dialect.Spring7, test)
}

// inBothLayouts is inBubble over a table of each layout.
func inBothLayouts(t *testing.T, test func(f *fixture)) {
	t.Helper()
	for _, layout := range []dialect.Layout{dialect.Spring7, dialect.Spring6} {
		t.Run(layout.String(), func(t *testing.T) {
			t.Parallel()
			inBubbleWith(t, layout, test)
		})
	}
}

func inBubbleWith(t *testing.T, layout dialect.Layout, test func(f *fixture)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		// Waiters poll, so a test that waits in vain would not deadlock.
		limit := time.AfterFunc(time.Hour, func() { panic(t.Name() + " waits in vain") })
		defer limit.Stop()
		test(&fixture{T: t, db: virtual.Migrated(t, layout)})
	})
}

// registry returns the registry of a process whose client id is name, with readable rows.
func (f *fixture) registry(name string) *sqllock.Registry {
	f.Helper()
	return f.registryOn(f.db.DB, name, sqllock.RegistryOptions{})
}

func (f *fixture) registryOn(db *sqlx.DB, name string, opts sqllock.RegistryOptions) *sqllock.Registry {
	f.Helper()
	repository, err := sqllock.NewRepository(f.Context(), db.DB, f.db.Dialect,
		&sqllock.RepositoryOptions{ClientID: name, Keys: sqllock.PlainKeys, TTL: ttl})
	f.must(err)
	opts.TTL, opts.IdleBetweenTries = ttl, idle
	registry, err := sqllock.NewRegistry(repository, &opts)
	f.must(err)
	f.Cleanup(func() { _ = registry.Close(context.Background()) })
	return registry
}

// networked returns the registry of a process whose statements follow a plan.
func (f *fixture) networked() (*sqllock.Registry, *flaky.Connector) {
	f.Helper()
	network := flaky.New(f.db.DB.Driver(), f.db.DSN)
	db := sqlx.NewDb(sql.OpenDB(network), "sqlite")
	f.Cleanup(func() { _ = db.Close() })
	return f.registryOn(db, "a", sqllock.RegistryOptions{}), network
}

// process returns the semaphore of a process.
func (f *fixture) process(name string, permits int) *semaphore.Semaphore {
	f.Helper()
	return f.semaphore(f.registry(name), permits)
}

func (f *fixture) semaphore(registry *sqllock.Registry, permits int) *semaphore.Semaphore {
	f.Helper()
	s, err := semaphore.New(registry, key, permits)
	f.must(err)
	return s
}

// acquires acquires n permits that are free.
func (f *fixture) acquires(s *semaphore.Semaphore, n int) *sqllock.Lease {
	f.Helper()
	lease, err := s.TryAcquire(f.Context(), n)
	f.must(err)
	return lease
}

// refuses checks that n permits are not free.
func (f *fixture) refuses(s *semaphore.Semaphore, n int) {
	f.Helper()
	_ = f.refusal(s, n)
}

// refusal is refuses, and returns why.
func (f *fixture) refusal(s *semaphore.Semaphore, n int) *sqllock.HeldError {
	f.Helper()
	lease, err := s.TryAcquire(f.Context(), n)
	var held *sqllock.HeldError
	if lease != nil || !errors.As(err, &held) {
		f.Fatalf("lease of %v, error %v", lease.Keys(), err)
	}
	return held
}

func (f *fixture) unlock(leases ...*sqllock.Lease) {
	f.Helper()
	for _, lease := range leases {
		f.must(lease.Unlock(f.Context()))
	}
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
	f.must(f.db.DB.SelectContext(f.Context(), &keys, "SELECT TRIM(LOCK_KEY) FROM INT_LOCK ORDER BY LOCK_KEY"))
	return keys
}

// has checks what is in the table.
func (f *fixture) has(keys ...string) {
	f.Helper()
	if got := f.rows(); fmt.Sprint(got) != fmt.Sprint(keys) {
		f.Fatalf("the table has %q, want %q", got, keys)
	}
}

func (f *fixture) must(err error) {
	f.Helper()
	if err != nil {
		f.Fatal(err)
	}
}

// is checks that err wraps all that are wanted.
func (f *fixture) is(err error, wanted ...error) {
	f.Helper()
	for _, one := range wanted {
		if !errors.Is(err, one) {
			f.Fatalf("error %v, want %v", err, one)
		}
	}
}

// isNot checks that err does not wrap another error.
func (f *fixture) isNot(err, other error) {
	f.Helper()
	if errors.Is(err, other) {
		f.Fatalf("error %v is %v", err, other)
	}
}

// takes checks how much virtual time has passed since began.
func (f *fixture) takes(what string, began time.Time, least, most time.Duration) {
	f.Helper()
	if d := time.Since(began); d < least || d > most {
		f.Fatalf("%s took %v, want %v to %v", what, d, least, most)
	}
}
