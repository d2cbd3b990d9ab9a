package servers_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// Until a new index has taken the place of the old one, PostgreSQL asks it for duplicates, too, but ON CONFLICT
// does not know it. That is a lost race, and no error of the database.
func TestReindexBesideLockers(t *testing.T) {
	t.Parallel()
	besideLockers(t, nil, "REINDEX INDEX CONCURRENTLY int_lock_pk")
}

// A table has plain keys in the order of ICU, as it is if it was not made by `migrate up`. The
// cure of doctor may be used beside processes.
func TestCollationBesideLockers(t *testing.T) {
	t.Parallel()
	const to = "ALTER TABLE INT_LOCK ALTER LOCK_KEY TYPE CHAR(36) COLLATE %[1]s, ALTER REGION TYPE VARCHAR(100) COLLATE %[1]s"
	besideLockers(t, &sqllock.RepositoryOptions{Keys: sqllock.PlainKeys}, fmt.Sprintf(to, `"en-x-icu"`), fmt.Sprintf(to, `"C"`))
}

// besideLockers has an operator execute statements again and again while processes acquire, release and renew.
func besideLockers(t *testing.T, opts *sqllock.RepositoryOptions, statements ...string) {
	t.Helper()
	databases{"PostgreSQL": alone(dbtest.Postgres), "the newest PostgreSQL": alone(dbtest.PostgresNewest)}.migrated(t, func(t *testing.T, db *dbtest.DB) {
		ctx, cancel := context.WithCancel(t.Context())
		var working sync.WaitGroup
		defer working.Wait()
		defer cancel()
		var acquired atomic.Int64
		held := check.Value(newRegistry(t, repository(t, db, opts), &sqllock.RegistryOptions{TTL: time.Hour, NoRenew: true}).TryLock(t.Context(), "held"))(t)
		for range 4 {
			r := newRegistry(t, repository(t, db, opts), nil)
			for _, lock := range []*sqllock.JdbcLock{
				obtain(t, r, "a"), obtain(t, r, "b"), obtain(t, r, "c"), obtain(t, r, "d"), obtainAll(t, r, "a", "b"), obtainAll(t, r, "c", "d"),
			} {
				working.Go(func() {
					for ctx.Err() == nil {
						lease, err := lock.TryLock(ctx)
						switch {
						case err == nil:
							acquired.Add(1)
							// A loaded server may have the row locked for longer than a
							// release waits: that is no fault of the index.
							if err := lease.Unlock(context.WithoutCancel(ctx)); err != nil && !errors.Is(err, sqllock.ErrPinned) {
								t.Error(err)
								return
							}
						case !errors.Is(err, sqllock.ErrNotAcquired):
							t.Error(err)
							return
						}
					}
				})
			}
		}
		operator := db.Open(t)
		for range 20 / len(statements) {
			for _, statement := range statements {
				must(t, check.ErrorOf(operator.ExecContext(t.Context(), statement)))
				must(t, held.Renew(t.Context()))
			}
		}
		t.Logf("%d acquired", acquired.Load())
		if acquired.Load() == 0 {
			t.Error("nothing was acquired")
		}
	})
}
