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
)

var (
	errLockTimeout = &pq.Error{Code: "55P03", Message: "canceling statement due to lock timeout"}
	rowIDs         = []string{"lock_key", "client_id"}
)

// The statement that renews all leases passes over rows that others have locked, such as
// those who try to acquire a lock that is held. Such a row is renewed by a statement of its
// own that waits for it, long before the next renewal of all.
func TestARowThatOthersHaveLockedIsRenewedAlone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Serializable)
		var told []error
		registry := newRegistry(t, r, &sqllock.RegistryOptions{
			TTL: beatTTL, AutoRenew: true, OnRenewal: func(_ int, err error) { told = append(told, err) },
		})
		mock.ExpectBegin()
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
		mock.ExpectCommit()
		lease, err := obtain(t, registry, "k").TryLock(t.Context())
		must(t, err)
		lockKey, err := r.LockKey("k")
		must(t, err)
		passedOver := func() {
			mock.ExpectQuery("WITH").WillReturnRows(sqlmock.NewRows(rowIDs))
			mock.ExpectQuery("SELECT").WillReturnRows(sqlmock.NewRows(rowIDs).AddRow(lockKey, lease.Holder()))
		}
		passedOver()
		mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1))
		began := lease.Deadline()
		time.Sleep(beatTTL/3 + time.Millisecond)
		synctest.Wait()
		if extended := lease.Deadline().Sub(began); extended < beatTTL/3 {
			t.Errorf("extended by %v", extended)
		}
		if len(told) != 1 || told[0] != nil {
			t.Errorf("OnRenewal was told %v", told)
		}

		passedOver()
		for range 4 { // it takes longer than OnRenewal is kept waiting
			mock.ExpectExec("UPDATE").WillReturnError(errLockTimeout)
		}
		mock.ExpectExec("UPDATE").WillReturnResult(sqlmock.NewResult(0, 1))
		began = lease.Deadline()
		time.Sleep(beatTTL * 3 / 5)
		synctest.Wait()
		if len(told) != 2 || !errors.Is(told[1], sqllock.ErrPinned) {
			t.Errorf("OnRenewal was told %v", told)
		}
		if extended := lease.Deadline().Sub(began); extended < beatTTL/3 {
			t.Errorf("extended by %v", extended)
		}
		mock.ExpectExec("DELETE").WillReturnResult(sqlmock.NewResult(0, 1))
		must(t, lease.Unlock(t.Context()))
	})
}
