package sqllock_test

import (
	"database/sql/driver"
	"errors"
	"strings"
	"testing"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// grouped returns a repository over a mocked member of a replication group.
func grouped(t *testing.T) (*sqllock.Repository, sqlmock.Sqlmock, *sqlx.DB) {
	t.Helper()
	return opened(t, func(mock sqlmock.Sqlmock) {
		expectInspected(mock)
		expectAsked(mock, groupMember...)
	})
}

// opened returns a repository over a mocked MySQL that answers as expect says.
func opened(t *testing.T, expect func(sqlmock.Sqlmock)) (*sqllock.Repository, sqlmock.Sqlmock, *sqlx.DB) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(func(expected, actual string) error {
		if !strings.Contains(actual, expected) {
			return errors.New(actual)
		}
		return nil
	})))
	must(t, err)
	expect(mock)
	pool := sqlx.NewDb(db, "sqlmock")
	r, err := sqllock.NewRepository(t.Context(), pool.DB, dialect.MySQL(), &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit})
	must(t, err)
	t.Cleanup(func() {
		must(t, mock.ExpectationsWereMet())
		mock.ExpectClose()
		must(t, db.Close())
	})
	return r, mock, pool
}

// A member of a replication group that is restarted outside of it acquires nothing, and says why
// not.
func TestAMemberThatLeftItsGroupAcquiresNothing(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		facts []string
		text  string // "" if the lock is only not acquired
	}{
		"outside of its group":  {[]string{"group_replication_group_name", "aaaa", "member_state", "OFFLINE"}, "MEMBER_STATE is OFFLINE"},
		"no group":              {nil, "create another one"},
		"another member asked":  {groupMember, ""},
		"the member has joined": {append([]string{"member_state", "ONLINE"}, groupMember...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, mock, _ := grouped(t)
			expectFree(mock)
			mock.ExpectExec("FROM performance_schema.replication_group_members").WillReturnResult(driver.RowsAffected(0))
			mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnResult(driver.RowsAffected(0))
			expectFree(mock)
			expectAsked(mock, test.facts...)
			got, err := r.Acquire(t.Context(), "k", r.NewHolder(), ttl)
			if got.Acquired || (err != nil) != (test.text != "") {
				t.Fatal(got, err)
			}
			if err != nil && (!errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), test.text)) {
				t.Error(err)
			}
		})
	}
}

// Nor does it acquire several keys, which are not taken for one whatever the collation is.
func TestAMemberThatLeftItsGroupAcquiresNoJointLock(t *testing.T) {
	t.Parallel()
	r, mock, _ := opened(t, func(mock sqlmock.Sqlmock) {
		expectCollated(mock, "utf8mb4_general_ci")
		expectAsked(mock, groupMember...)
	})
	none, rowIDs := sqlmock.NewRows(listed), sqlmock.NewRows([]string{"LOCK_KEY", "CLIENT_ID"})
	mock.ExpectQuery("SELECT REGION").WillReturnRows(none)
	mock.ExpectBegin()
	mock.ExpectExec("FROM performance_schema.replication_group_members").WillReturnResult(driver.RowsAffected(0))
	mock.ExpectQuery("SELECT LOCK_KEY, CLIENT_ID").WillReturnRows(rowIDs)
	mock.ExpectQuery("SELECT REGION").WillReturnRows(none)
	mock.ExpectRollback()
	mock.ExpectQuery("SELECT REGION").WillReturnRows(none)
	expectAsked(mock, "group_replication_group_name", "aaaa", "member_state", "OFFLINE")
	joint, err := newRegistry(t, r, nil).ObtainAll("a", "b")
	must(t, err)
	if _, err := joint.TryLock(t.Context()); !errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), "MEMBER_STATE is OFFLINE") {
		t.Error(err)
	}
}

// A statement that fails does not make the server one that belongs to no group.
func TestAMemberThatCannotBeAskedIsNoError(t *testing.T) {
	t.Parallel()
	r, mock, pool := grouped(t)
	expectFree(mock)
	mock.ExpectExec("FROM performance_schema.replication_group_members").WillReturnResult(driver.RowsAffected(0))
	mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnResult(driver.RowsAffected(0))
	expectFree(mock)
	mock.ExpectQuery("replication_group_members").WillReturnError(mysql.ErrInvalidConn)
	expectAsked(mock, groupMember[:4]...) // what a user with few rights may read
	got, err := r.Acquire(t.Context(), "k", r.NewHolder(), ttl)
	if got.Acquired || err != nil {
		t.Error(got, err)
	}
	var rest []struct{ Name, Value string }
	must(t, pool.SelectContext(t.Context(), &rest, "SELECT CAST(VARIABLE_NAME")) // it was not asked for
}

// If the server has not answered NewRepository what it is, the first Guard asks again.
func TestGuardAsksWhereNewRepositoryCouldNot(t *testing.T) {
	t.Parallel()
	r, mock, pool := opened(t, func(mock sqlmock.Sqlmock) {
		expectInspected(mock)
		mock.ExpectQuery("SELECT CAST(").WillReturnError(mysql.ErrInvalidConn)
		mock.ExpectQuery("SELECT CAST(").WillReturnError(mysql.ErrInvalidConn)
	})
	lease := mockedLease(t, r, mock)
	mock.ExpectBegin()
	expectAsked(mock, galeraNode...)
	mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(1))
	mock.ExpectCommit()
	tx := pool.MustBegin()
	must(t, lease.Guard(t.Context(), tx))
	must(t, tx.Commit())
	mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(1))
	must(t, lease.Unlock(t.Context()))
}

// The user of the guarded transaction may lack the right to ask whether its server is ONLINE.
func TestGuardOfAUserWithFewRights(t *testing.T) {
	t.Parallel()
	r, mock, pool := grouped(t)
	lease := mockedLease(t, r, mock)
	mock.ExpectBegin()
	mock.ExpectExec("FROM performance_schema.replication_group_members").WillReturnError(errDenied)
	mock.ExpectExec("EXPIRED_AFTER >= UTC_TIMESTAMP(6)").WillReturnResult(driver.RowsAffected(1))
	mock.ExpectCommit()
	tx := pool.MustBegin()
	must(t, lease.Guard(t.Context(), tx))
	must(t, tx.Commit())
	mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(1))
	must(t, lease.Unlock(t.Context()))
}
