package engine_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/engine"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/virtual"
)

const ttl = 10 * time.Second

// A fixture is a registry over a database that fails on demand, in a bubble.
type fixture struct {
	*testing.T
	db        *dbtest.DB // the same database, always well
	connector *flaky.Connector
	registry  *sqllock.Registry
	locks     *engine.Locks
}

func inBubble(t *testing.T, opts sqllock.RegistryOptions, test func(*fixture)) {
	t.Helper()
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		t.Cleanup(func() { time.Sleep(time.Minute) }) // for the statements that are left behind
		db := virtual.Migrated(t, dialect.Spring7)
		connector := flaky.New(db.DB.Driver(), db.DSN)
		pool := sql.OpenDB(connector)
		t.Cleanup(func() { must(t, pool.Close()) })
		registry := newRegistry(t, pool, opts)
		test(&fixture{t, db, connector, registry, engine.LocksOf(registry)})
	})
}

func newRegistry(t *testing.T, pool *sql.DB, opts sqllock.RegistryOptions) *sqllock.Registry {
	t.Helper()
	repository, err := sqllock.NewRepository(t.Context(), pool, dialect.SQLite(), &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit})
	must(t, err)
	opts.TTL = ttl
	registry, err := sqllock.NewRegistry(repository, &opts)
	must(t, err)
	t.Cleanup(func() { must(t, registry.Close(context.Background())) })
	return registry
}

// rival returns another process.
func (f *fixture) rival() *sqllock.Registry {
	f.Helper()
	return newRegistry(f.T, f.db.DB.DB, sqllock.RegistryOptions{})
}

func (f *fixture) lock(key string) *sqllock.Lease {
	f.Helper()
	lease, err := f.registry.TryLock(f.Context(), key)
	must(f.T, err)
	return lease
}

// TestRenew_PartOfTheLeasesFails shows that what one statement has renewed does not depend on the next: of
// very many leases one part fails, and the others go on.
func TestRenew_PartOfTheLeasesFails(t *testing.T) {
	inBubble(t, sqllock.RegistryOptions{AutoRenew: true}, func(f *fixture) {
		const part, more = 40, 10
		engine.RenewInBatches(f.locks, part)
		var leases []*sqllock.Lease
		for i := range part + more {
			leases = append(leases, f.lock(fmt.Sprint("key ", i)))
		}
		var queries int
		f.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && !m.Done {
				if queries++; queries%2 == 0 {
					return errors.New("connection reset by peer")
				}
			}
			return nil
		})
		time.Sleep(ttl + time.Second)
		synctest.Wait()
		kept := 0
		for _, lease := range leases {
			if lease.Context().Err() == nil {
				kept++
			}
		}
		if kept < part {
			f.Errorf("%d of %d leases were kept", kept, len(leases))
		}
		f.connector.Follow(nil)
	})
}

// TestRenew_LateAnswerBeforeTheTimer shows that an answer to a renewal is late that comes after the lease, but
// before its timer has run, as after a pause of the whole process.
func TestRenew_LateAnswerBeforeTheTimer(t *testing.T) {
	inBubble(t, sqllock.RegistryOptions{AutoRenew: true}, func(f *fixture) {
		lease := f.lock("k")
		f.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Query && m.Done {
				engine.EndBeforeTimer(engine.UseOf(lease))
			}
			return nil
		})
		time.Sleep(ttl/3 + time.Second)
		f.connector.Follow(nil)
		next, err := f.rival().TryLock(f.Context(), "k")
		must(f.T, err)
		must(f.T, next.Unlock(f.Context()))
	})
}

// TestContext_IsDoneWhileTheLeaseEnds stops the goroutine that ends a lease, before it ends the context: as a
// process is that continues after a pause, on a busy machine.
func TestContext_IsDoneWhileTheLeaseEnds(t *testing.T) {
	inBubble(t, sqllock.RegistryOptions{}, func(f *fixture) {
		lease := f.lock("k")
		made, cancel := context.WithCancel(lease.Context())
		defer cancel()
		let := make(chan struct{})
		defer close(let)
		engine.BeforeEnd(engine.UseOf(lease), func() { <-let })
		next, err := f.rival().Lock(f.Context(), "k") // when the row has expired
		must(f.T, err)
		if err := lease.Context().Err(); err == nil || !errors.Is(context.Cause(lease.Context()), sqllock.ErrLockLost) {
			f.Errorf("the context lasts while another process has the lock: %v, cause %v", err, context.Cause(lease.Context()))
		}
		<-lease.Context().Done()
		if made.Err() == nil {
			f.Error("a context that is made from it lasts")
		}
		must(f.T, next.Unlock(f.Context()))
	})
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
