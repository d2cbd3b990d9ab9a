package rwlock_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/observe"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// TestAWriterWaitsForAReaderThatMeetsIt: a reader comes in after the writer has found nobody, and
// before it has its row. Lock waits until the reader has left; it does not return ErrNotAcquired.
func TestAWriterWaitsForAReaderThatMeetsIt(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db := virtual.Migrated(t, dialect.Spring7)
		repository, err := sqllock.NewRepository(t.Context(), db.DB.DB, dialect.SQLite(), nil)
		succeeded(t, err)
		readers, err := sqllock.NewRegistry(repository, nil)
		succeeded(t, err)
		var met *sqllock.Lease
		writers, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{Observers: []*observe.Observer{{
			Acquire: func(ctx context.Context, e observe.AcquireStart) (context.Context, func(observe.AcquireEnd)) {
				if e.Key == "prices" && met == nil {
					met, err = pricesOf(readers).RLock(ctx)
				}
				return nil, nil
			},
		}}})
		succeeded(t, err)

		go func() {
			time.Sleep(time.Second)
			_ = met.Unlock(context.Background()) // an error is seen below
		}()
		began := time.Now()
		lease, writeErr := pricesOf(writers).Lock(t.Context())
		succeeded(t, writeErr)
		succeeded(t, err)
		if waited := time.Since(began); waited < time.Second {
			t.Errorf("the writer came in after %v, beside a reader", waited)
		}
		succeeded(t, lease.Unlock(t.Context()))
		succeeded(t, readers.Close(t.Context()))
		succeeded(t, writers.Close(t.Context()))
	})
}

// pricesOf returns the lock of "prices" in a registry.
func pricesOf(registry *sqllock.Registry) *rwlock.Lock {
	l, err := rwlock.New(registry, "prices")
	if err != nil {
		panic(err)
	}
	return l
}

func succeeded(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
