package sqllock_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/dbtest"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/observe"
)

// Where one guarded transaction follows the other, renewals find the row pinned each time. So a
// guard has the lease renewed first, once that is overdue.
func TestAGuardRenewsALeaseWhoseRenewalIsOverdue(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var errs []error
		lease, mock, passedOver := renewedBeside(t, &errs)
		guard := func() {
			t.Helper()
			must(t, sqllock.GuardFunc(t.Context(), lease, answers(nil))) // which does not ask the mock
		}
		passedOver()
		mock.ExpectExec("UPDATE").WillReturnError(errLockTimeout)
		mock.ExpectExec("UPDATE").WillReturnError(errLockTimeout)
		mock.ExpectQuery("WITH").WillReturnRows(sqlmock.NewRows(rowIDs).AddRow(lockKeyOf(t, lease), lease.Holder()))
		mock.ExpectExec("DELETE").WillReturnResult(sqlmock.NewResult(0, 1))
		began := lease.Deadline()
		guard() // sends nothing else
		time.Sleep(renewalTTL/3 + time.Second)
		guard() // another try is to come
		time.Sleep(renewalTTL/15 + time.Second)
		if extended := lease.Deadline().Sub(began); extended != 0 {
			t.Errorf("extended by %v", extended)
		}
		guard()
		if extended := lease.Deadline().Sub(began); extended < renewalTTL/3 {
			t.Errorf("extended by %v", extended)
		}
		guard()
		must(t, lease.Unlock(t.Context()))
	})
}

// Rows that are pinned all the time have all turns of the statement that waits for such rows. Those of
// another lease are pinned by one short transaction after the other.
func TestShortGuardedTransactionsLoseNoLease(t *testing.T) {
	t.Parallel()
	for name, open := range map[string]func(testing.TB) *dbtest.DB{"PostgreSQL": dbtest.Postgres, "MariaDB": dbtest.MySQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db := open(t)
			must(t, migrations.Up(t.Context(), db.DB.DB, db.Dialect, nil))
			r, err := sqllock.NewRepository(t.Context(), db.DB.DB, db.Dialect, nil)
			must(t, err)
			renewed := make(chan observe.Renewal, 100)
			registry := newRegistry(t, r, &sqllock.RegistryOptions{
				TTL: 20 * time.Second, AutoRenew: true, Observers: onRenewals(func(e observe.Renewal) { renewed <- e }),
			})
			tx, err := db.DB.BeginTx(t.Context(), nil)
			must(t, err)
			defer func() { must(t, tx.Rollback()) }()
			for i := range 20 {
				long, err := registry.TryLock(t.Context(), fmt.Sprint("long", i))
				must(t, err)
				must(t, long.RenewFor(t.Context(), ttl))
				must(t, long.Guard(t.Context(), tx))
			}
			for e := <-renewed; e.Pinned == 0; {
				e = <-renewed
			}
			lock, err := registry.ObtainAll("a", "b")
			must(t, err)
			short, err := lock.TryLock(t.Context())
			must(t, err)
			for began := short.Deadline(); !short.Deadline().After(began); {
				tx, err := db.DB.BeginTx(t.Context(), nil)
				must(t, err)
				must(t, short.Guard(t.Context(), tx)) // it fails once the lease is lost
				time.Sleep(100 * time.Millisecond)
				must(t, tx.Commit())
			}
			must(t, short.Unlock(t.Context()))
		})
	}
}
