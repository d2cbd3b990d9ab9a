package sqllock_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/observe"
)

var (
	errLockTimeout = &pq.Error{Code: "55P03", Message: "canceling statement due to lock timeout"}
	rowIDs         = []string{"lock_key", "client_id"}
)

// renewedBeside returns a lease from a mocked PostgreSQL that is renewed automatically, with the
// errors that are reported, and a function that expects a renewal of all leases that passes
// over its row.
func renewedBeside(t *testing.T, errs *[]error) (lease *sqllock.Lease, mock sqlmock.Sqlmock, passedOver func()) {
	t.Helper()
	r, mock := mocked(t, dialect.Postgres(), sqllock.Serializable)
	registry := newRegistry(t, r, &sqllock.RegistryOptions{
		TTL: renewalTTL, AutoRenew: true, Observers: onRenewals(func(e observe.Renewal) { *errs = append(*errs, e.Err) }),
	})
	mock.ExpectBegin()
	mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
	mock.ExpectCommit()
	lease, err := obtain(t, registry, "k").TryLock(t.Context())
	must(t, err)
	return lease, mock, func() {
		mock.ExpectQuery("WITH").WillReturnRows(sqlmock.NewRows(rowIDs))
		mock.ExpectQuery("SELECT").WillReturnRows(sqlmock.NewRows(rowIDs).AddRow(lockKeyOf(t, lease), lease.Holder()))
	}
}

// lockKeyOf returns the LOCK_KEY of the default KeyMapper.
func lockKeyOf(t *testing.T, lease *sqllock.Lease) string {
	t.Helper()
	lockKey, err := sqllock.SpringKeys(lease.Key())
	must(t, err)
	return lockKey
}

// The statement that renews all leases passes over rows that another transaction has locked,
// as a refused attempt to acquire does. Such a row is renewed by a statement of its own that
// waits for it, long before the next renewal of all leases.
func TestARowThatIsLockedElsewhereIsRenewedAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		var errs []error
		lease, mock, passedOver := renewedBeside(t, &errs)
		passedOver()
		mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1))
		began := lease.Deadline()
		time.Sleep(renewalTTL/3 + time.Millisecond)
		synctest.Wait()
		if extended := lease.Deadline().Sub(began); extended < renewalTTL/3 {
			t.Errorf("extended by %v", extended)
		}
		if len(errs) != 1 || errs[0] != nil {
			t.Errorf("the renewals reported %v", errs)
		}

		passedOver()
		for range 4 { // it takes longer than a try
			mock.ExpectExec("UPDATE").WillReturnError(errLockTimeout)
		}
		mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1))
		began = lease.Deadline()
		time.Sleep(renewalTTL * 3 / 5)
		synctest.Wait()
		if len(errs) != 2 || !errors.Is(errs[1], sqllock.ErrPinned) {
			t.Errorf("the renewals reported %v", errs)
		}
		if extended := lease.Deadline().Sub(began); extended < renewalTTL/3 {
			t.Errorf("extended by %v", extended)
		}
		mock.ExpectExec("DELETE").WillReturnResult(sqlmock.NewResult(0, 1))
		must(t, lease.Unlock(t.Context()))
	})
}
