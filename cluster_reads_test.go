package sqllock_test

import (
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"

	"github.com/sqllock/sqllock"
)

// What was tried with servers that lag behind is in reliability/clusters. Here are servers that are not
// there: Galera of MySQL, and a group with another consistency.

var eventual = append([]string{"group_replication_consistency", "EVENTUAL"}, groupMember...)

// lateReader returns a repository over a mocked server whose reads are late unless a variable is set.
func lateReader(t *testing.T, facts []string) (*sqllock.Repository, sqlmock.Sqlmock) {
	t.Helper()
	r, mock, _ := opened(t, func(mock sqlmock.Sqlmock) {
		expectInspected(mock)
		expectAsked(mock, facts...)
	})
	return r, mock
}

// expectCurrent expects a read of rows, or its error, with the variable set and then as it was.
func expectCurrent(mock sqlmock.Sqlmock, variable string, rows *sqlmock.Rows) {
	mock.ExpectExec("SET @sqllock_" + variable + " = @@SESSION." + variable + ", SESSION " + variable + " = ").WillReturnResult(driver.RowsAffected(0))
	mock.ExpectQuery("UNION ALL").WillReturnRows(rows)
	mock.ExpectExec("SET SESSION " + variable + " = @sqllock_" + variable).WillReturnResult(driver.RowsAffected(0))
}

var listed = []string{"REGION", "LOCK_KEY", "CLIENT_ID", "age", "left"}

func TestReadsThatDecideWait(t *testing.T) {
	t.Parallel()
	for variable, facts := range map[string][]string{"wsrep_sync_wait": galeraNode, "group_replication_consistency": eventual} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			r, mock := lateReader(t, facts)
			lockKey, err := r.LockKey("k")
			must(t, err)
			held := func(left time.Duration) *sqlmock.Rows {
				return sqlmock.NewRows(listed).AddRow(r.Region(), lockKey, "holder", 0, left.Microseconds())
			}
			expectCurrent(mock, variable, held(time.Second))
			row, ok, err := r.Peek(t.Context(), "k")
			if err != nil || !ok || row.Holder != "holder" {
				t.Error(row, ok, err)
			}
			// A row that a statement has not found may be there by now.
			mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(0))
			expectCurrent(mock, variable, held(time.Second))
			mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(1))
			if renewed, err := r.Renew(t.Context(), "k", "holder", time.Minute); err != nil || !renewed {
				t.Error(renewed, err)
			}
			// It is not renewed because it lasts, but if it lasts for as long.
			for left, want := range map[time.Duration]bool{time.Second: false, time.Hour: true} {
				mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(0))
				expectCurrent(mock, variable, held(left))
				mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(0))
				if renewed, err := r.Renew(t.Context(), "k", "holder", time.Minute); err != nil || renewed != want {
					t.Errorf("left %v: %v, %v", left, renewed, err)
				}
			}
			mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(0))
			expectCurrent(mock, variable, held(time.Second))
			mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(1))
			if deleted, err := r.Delete(t.Context(), "k", "holder"); err != nil || !deleted {
				t.Error(deleted, err)
			}
			mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(0))
			expectCurrent(mock, variable, sqlmock.NewRows(listed))
			if deleted, err := r.Delete(t.Context(), "k", "holder"); err != nil || deleted {
				t.Error(deleted, err)
			}
			expectCurrent(mock, variable, held(time.Second))
			if held, err := r.IsAcquired(t.Context(), "k", "holder"); err != nil || !held {
				t.Error(held, err)
			}
		})
	}
}

// A release that was sent again, because its connection was closed, may have met a server that lags behind: that it
// has found no row does not mean that the first one has deleted it.
func TestAReleaseThatIsSentAgainFindsTheRow(t *testing.T) {
	t.Parallel()
	r, mock, pool := opened(t, func(mock sqlmock.Sqlmock) {
		expectInspected(mock)
		expectAsked(mock, eventual...)
	})
	spare, err := pool.Connx(t.Context()) // the mock ends with its last connection
	must(t, err)
	pool.SetMaxIdleConns(1)
	t.Cleanup(func() { must(t, spare.Close()) })
	lockKey, err := r.LockKey("k")
	must(t, err)
	late := func(statement, holder string) {
		mock.ExpectExec(statement).WillReturnError(driver.ErrBadConn)
		mock.ExpectExec(statement).WillReturnResult(driver.RowsAffected(0))
		expectCurrent(mock, "group_replication_consistency", sqlmock.NewRows(listed).AddRow(r.Region(), lockKey, holder, 0, 1))
		mock.ExpectExec(statement).WillReturnResult(driver.RowsAffected(1))
	}
	late("DELETE", "holder")
	if deleted, err := r.Delete(t.Context(), "k", "holder"); err != nil || !deleted {
		t.Error(deleted, err)
	}
	expectFree(mock)
	mock.ExpectExec("INSERT INTO INT_LOCK").WillReturnResult(driver.RowsAffected(1))
	mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnResult(sqlmock.NewResult(7, 1))
	kept, err := obtain(t, newRegistry(t, r, nil), "k").WithMinHold(ttl).TryLock(t.Context())
	must(t, err)
	late("UPDATE", kept.Holder())
	must(t, kept.Unlock(t.Context()))
}

// A session whose variable cannot be set back is not used again.
func TestASessionIsLeftAsItWas(t *testing.T) {
	t.Parallel()
	r, mock := lateReader(t, eventual)
	mock.ExpectExec("SET @sqllock_").WillReturnResult(driver.RowsAffected(0))
	mock.ExpectQuery("UNION ALL").WillReturnRows(sqlmock.NewRows(listed))
	refused := &mysql.MySQLError{Number: 1231}
	mock.ExpectExec("SET SESSION").WillReturnError(refused)
	mock.ExpectClose()
	if _, _, err := r.Peek(t.Context(), "k"); !errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, refused) {
		t.Error(err)
	}
}

// What a server answers that is no member counts for nothing.
func TestAReadOnAServerThatLeftItsCluster(t *testing.T) {
	t.Parallel()
	node := append([]string{"WSREP_CLUSTER_STATE_UUID", "aaaa"}, galeraNode...)
	for name, test := range map[string]struct {
		before, now    []string
		variable, text string
	}{
		"Galera is off":      {node, []string{"WSREP_ON", "OFF"}, "wsrep_sync_wait", "start it with wsrep_on=ON"},
		"another cluster":    {node, append([]string{"WSREP_CLUSTER_STATE_UUID", "bbbb"}, galeraNode...), "wsrep_sync_wait", "wsrep_cluster_state_uuid is bbbb, and was aaaa"},
		"no group":           {eventual, nil, "group_replication_consistency", "create another one"},
		"a member once more": {eventual, eventual, "group_replication_consistency", "not a working member"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, mock := lateReader(t, test.before)
			expectCurrent(mock, test.variable, sqlmock.NewRows(listed).AddRow("", "", "", 0, 0))
			expectAsked(mock, test.now...)
			mock.ExpectClose()
			if _, err := r.PeekAll(t.Context(), "k"); !errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), test.text) {
				t.Error(err)
			}
		})
	}
}
