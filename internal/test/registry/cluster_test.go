package registry_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
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
	db, mock := matching(t, strings.Contains)
	expect(mock)
	pool := sqlx.NewDb(db, "sqlmock")
	r := check.Value(sqllock.NewRepository(t.Context(), pool.DB, dialect.MySQL(), &sqllock.RepositoryOptions{Isolation: sqllock.Autocommit}))(t)
	t.Cleanup(func() {
		must(t, mock.ExpectationsWereMet())
		_ = db.Close() // the mock did not expect it
	})
	return r, mock, pool
}

// matching returns a mocked database that compares statements with those that are expected.
func matching(t *testing.T, is func(actual, expected string) bool) (*sql.DB, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherFunc(func(expected, actual string) error {
		if !is(actual, expected) {
			return errors.New(actual)
		}
		return nil
	})))
	must(t, err)
	return db, mock
}

// A member of a replication group that is restarted outside of it acquires nothing, and says why
// not.
func TestCluster_MemberThatLeftAcquiresNothing(t *testing.T) {
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
func TestCluster_MemberThatLeftAcquiresNoJointLock(t *testing.T) {
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
	joint := check.Value(newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}).ObtainAll("a", "b"))(t)
	if _, err := joint.TryLock(t.Context()); !errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), "MEMBER_STATE is OFFLINE") {
		t.Error(err)
	}
}

// A statement that fails does not make the server one that belongs to no group.
func TestCluster_MemberThatCannotBeAsked(t *testing.T) {
	t.Parallel()
	r, mock, pool := grouped(t)
	expectFree(mock)
	mock.ExpectExec("FROM performance_schema.replication_group_members").WillReturnResult(driver.RowsAffected(0))
	mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnResult(driver.RowsAffected(0))
	expectFree(mock)
	mock.ExpectQuery("replication_group_members").WillReturnError(errDenied)
	expectAsked(mock, groupMember[:4]...) // what a user with few rights may read
	got, err := r.Acquire(t.Context(), "k", r.NewHolder(), ttl)
	if got.Acquired || err != nil {
		t.Error(got, err)
	}
	var rest []struct{ Name, Value string }
	must(t, pool.SelectContext(t.Context(), &rest, "SELECT CAST(VARIABLE_NAME")) // it was not asked for
}

// The user of the guarded transaction may lack the right to ask whether its server is ONLINE.
func TestCluster_GuardOfAUserWithFewRights(t *testing.T) {
	t.Parallel()
	r, mock, pool := grouped(t)
	lease := mockedLease(t, r, mock)
	guards(t, lease, mock, pool, func() {
		mock.ExpectExec("FROM performance_schema.replication_group_members").WillReturnError(errDenied)
		mock.ExpectExec("EXPIRED_AFTER >= UTC_TIMESTAMP(6)").WillReturnResult(driver.RowsAffected(1))
	})
	unlocks(t, lease, mock)
}

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

func TestCluster_ReadsThatDecideWait(t *testing.T) {
	t.Parallel()
	for variable, facts := range map[string][]string{"wsrep_sync_wait": galeraNode, "group_replication_consistency": eventual} {
		t.Run(variable, func(t *testing.T) {
			t.Parallel()
			r, mock := lateReader(t, facts)
			lockKey := check.Value(r.LockKey("k"))(t)
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
			check.Equal(t, "renewed", check.Value(r.Renew(t.Context(), "k", "holder", time.Minute))(t), true)
			// It is not renewed because it lasts, but if it lasts for as long.
			for left, want := range map[time.Duration]bool{time.Second: false, time.Hour: true} {
				mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(0))
				expectCurrent(mock, variable, held(left))
				mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(0))
				if renewed, err := r.Renew(t.Context(), "k", "holder", time.Minute); err != nil || renewed != want {
					t.Errorf("left %v: %v, %v", left, renewed, err)
				}
			}
			mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnResult(driver.RowsAffected(0))
			expectCurrent(mock, variable, held(time.Second))
			mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnResult(driver.RowsAffected(1))
			check.Equal(t, "deleted", check.Value(r.Delete(t.Context(), "k", "holder"))(t), true)
			mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnResult(driver.RowsAffected(0))
			expectCurrent(mock, variable, sqlmock.NewRows(listed))
			check.Equal(t, "deleted", check.Value(r.Delete(t.Context(), "k", "holder"))(t), false)
			expectCurrent(mock, variable, held(time.Second))
			check.Equal(t, "held", check.Value(r.IsAcquired(t.Context(), "k", "holder"))(t), true)
		})
	}
}

// A release that was sent again, because its connection was closed, may have met a server that lags behind: that it
// has found no row does not mean that the first one has deleted it.
func TestCluster_ResentReleaseFindsTheRow(t *testing.T) {
	t.Parallel()
	r, mock, pool := opened(t, func(mock sqlmock.Sqlmock) {
		expectInspected(mock)
		expectAsked(mock, eventual...)
	})
	spare := check.Value(pool.Connx(t.Context()))(t) // the mock ends with its last connection
	pool.SetMaxIdleConns(1)
	t.Cleanup(func() { _ = spare.Close() }) // the mock did not expect it
	lockKey := check.Value(r.LockKey("k"))(t)
	late := func(statement, holder string) {
		mock.ExpectExec(statement).WillReturnError(driver.ErrBadConn)
		mock.ExpectExec(statement).WillReturnResult(driver.RowsAffected(0))
		expectCurrent(mock, "group_replication_consistency", sqlmock.NewRows(listed).AddRow(r.Region(), lockKey, holder, 0, 1))
		mock.ExpectExec(statement).WillReturnResult(driver.RowsAffected(1))
	}
	late("DELETE", "holder")
	check.Equal(t, "deleted", check.Value(r.Delete(t.Context(), "k", "holder"))(t), true)
	expectFree(mock)
	mock.ExpectExec("INSERT INTO INT_LOCK").WillReturnResult(driver.RowsAffected(1))
	mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnResult(sqlmock.NewResult(7, 1))
	kept := try(t, obtain(t, newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}), "k").WithMinHold(ttl))
	late("UPDATE", kept.Holder())
	must(t, kept.Unlock(t.Context()))
}

// A session whose variable cannot be set back is not used again.
func TestCluster_SessionIsLeftAsItWas(t *testing.T) {
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
func TestCluster_ReadOnAServerThatLeft(t *testing.T) {
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

// What servers say that belong to a cluster. On real clusters the same is tried in
// dev/reliability/clusters.
var (
	galeraNode  = []string{"WSREP_ON", "ON", "WSREP_READY", "ON", "WSREP_CLUSTER_STATUS", "Primary"}
	groupMember = []string{"group_replication_group_name", "aaaa", "group_replication_enforce_update_everywhere_checks", "OFF", "member_state", "ONLINE"}

	errDenied = &mysql.MySQLError{Number: 1142, Message: "SELECT command denied to user"}
)

// A node that lags behind makes a read wait (wsrep_sync_wait), until it fails with the number of a
// pinned row. What could not be read is neither pinned nor taken.
func TestCluster_TryThatCannotReadIsADatabaseError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.MySQL(), sqllock.Autocommit)
		errLag := &mysql.MySQLError{Number: 1205, Message: "Lock wait timeout exceeded"}
		mock.ExpectQuery("SELECT").WillReturnError(errLag)                               // before the attempt
		mock.ExpectQuery("SELECT").WillDelayFor(2 * time.Second).WillReturnError(errLag) // after it
		_, err := newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}).TryLock(t.Context(), "k")
		is(t, err, sqllock.ErrDatabase, errLag)
		check.IsNot(t, err, sqllock.ErrNotAcquired, sqllock.ErrPinned)
	})
}

// A node of a cluster certifies what a transaction has changed, so Guard changes the row there. A transaction
// that commits after another node has changed it is refused. The server is asked once what it is.
func TestCluster_GuardWritesTheRow(t *testing.T) {
	t.Parallel()
	begun := func(mock sqlmock.Sqlmock, facts []string, commit error) {
		mock.ExpectBegin()
		if facts != nil {
			expectAsked(mock, facts...)
		}
		mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(1))
		mock.ExpectCommit().WillReturnError(commit)
	}
	for name, test := range map[string]struct {
		expect  func(mock sqlmock.Sqlmock, refusal error)
		refusal error
	}{
		"Galera":                   {func(mock sqlmock.Sqlmock, refusal error) { begun(mock, galeraNode, refusal) }, &mysql.MySQLError{Number: 1213}},
		"Group Replication":        {func(mock sqlmock.Sqlmock, refusal error) { begun(mock, groupMember, refusal) }, &mysql.MySQLError{Number: 3101}},
		"Group Replication, later": {func(mock sqlmock.Sqlmock, refusal error) { begun(mock, groupMember, refusal) }, &mysql.MySQLError{Number: 1180}},
		"a race that is lost": {func(mock sqlmock.Sqlmock, _ error) {
			mock.ExpectBegin()
			expectAsked(mock, galeraNode...)
			mock.ExpectExec("UPDATE").WillReturnError(errDeadlock)
			mock.ExpectRollback()
			begun(mock, nil, nil)
		}, nil},
		// A node that has aborted the transaction says so to its next statement, the question. After that
		// the server has no transaction, so a lock would be gone at once: Guard must not answer that it has
		// pinned the row.
		"a transaction that the node has aborted": {func(mock sqlmock.Sqlmock, _ error) {
			mock.ExpectBegin()
			mock.ExpectQuery("SELECT CAST(").WillReturnError(errDeadlock)
			mock.ExpectRollback()
			begun(mock, galeraNode, nil)
		}, nil},
	} {
		runInBubble(t, name, func(t *testing.T) {
			ran, err := guarding(t, func(mock sqlmock.Sqlmock) { test.expect(mock, test.refusal) })
			if !errors.Is(err, test.refusal) || test.refusal != nil && !errors.Is(err, sqllock.ErrDatabase) || ran != 1 {
				t.Errorf("ran %d times: %v", ran, err)
			}
		})
	}
}

// A Guard that fails is followed by one that succeeds, whatever the first one has learnt of the server: a
// connection that breaks says nothing about it. A row that is not there is a lease that is lost.
func TestCluster_GuardThatFails(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		expect func(sqlmock.Sqlmock)
		want   error
	}{
		"a broken connection": {func(mock sqlmock.Sqlmock) {
			mock.ExpectQuery("SELECT CAST(").WillReturnError(mysql.ErrInvalidConn)
			mock.ExpectQuery("SELECT 1").WillReturnError(mysql.ErrInvalidConn)
		}, mysql.ErrInvalidConn},
		"a lost lease": {func(mock sqlmock.Sqlmock) {
			expectAsked(mock, galeraNode...)
			mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(0))
			mock.ExpectQuery("SELECT COUNT").WillReturnRows(rowsOf(0).AddRow(0))
		}, sqllock.ErrLockLost},
	} {
		runInBubble(t, name, func(t *testing.T) {
			r, mock, pool := mockedPool(t, dialect.MySQL(), sqllock.Autocommit)
			lease := mockedLease(t, r, mock)
			mock.ExpectBegin()
			test.expect(mock)
			mock.ExpectRollback()
			tx := pool.MustBegin()
			if err := lease.Guard(t.Context(), tx); !errors.Is(err, test.want) || errors.Is(err, sqllock.ErrInvalid) {
				t.Error(err)
			}
			must(t, tx.Rollback())
			if lease.Context().Err() != nil {
				return
			}
			guards(t, lease, mock, pool, func() { expectNode(mock) })
			unlocks(t, lease, mock)
		})
	}
}

// mockedLease has a mocked MySQL grant a lock.
func mockedLease(t *testing.T, r *sqllock.Repository, mock sqlmock.Sqlmock) *sqllock.Lease {
	t.Helper()
	expectFree(mock)
	mock.ExpectExec("INSERT").WillReturnResult(driver.RowsAffected(1))
	mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnResult(sqlmock.NewResult(7, 1))
	return check.Value(newRegistry(t, r, &sqllock.RegistryOptions{TTL: time.Hour, NoRenew: true}).TryLock(t.Context(), "k"))(t)
}

// guards guards a transaction by a lease, with the statements that are expected.
func guards(t *testing.T, lease *sqllock.Lease, mock sqlmock.Sqlmock, pool *sqlx.DB, expect func()) {
	t.Helper()
	mock.ExpectBegin()
	expect()
	mock.ExpectCommit()
	tx := pool.MustBegin()
	must(t, lease.Guard(t.Context(), tx))
	must(t, tx.Commit())
}

// expectNode expects the statements of Guard on a node of Galera that has not been asked yet.
func expectNode(mock sqlmock.Sqlmock) {
	expectAsked(mock, galeraNode...)
	mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(1))
}

func unlocks(t *testing.T, lease *sqllock.Lease, mock sqlmock.Sqlmock) {
	t.Helper()
	mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnResult(driver.RowsAffected(1))
	must(t, lease.Unlock(t.Context()))
}

// Guard asks a server of its own, or one that does not say, once a minute: it may have been
// restarted as a node of a cluster since.
func TestCluster_GuardAsksAgainAfterAMinute(t *testing.T) {
	t.Parallel()
	for name, refused := range map[string]error{"a server of its own": nil, "a server that does not say": errDenied} {
		runInBubble(t, name, func(t *testing.T) {
			r, mock, pool := mockedPool(t, dialect.MySQL(), sqllock.Autocommit)
			lease := mockedLease(t, r, mock)
			guard := func(expect func()) { guards(t, lease, mock, pool, expect) }
			locks := func() { mock.ExpectQuery("SELECT 1").WillReturnRows(rowsOf(1)) }
			guard(func() {
				if refused != nil {
					mock.ExpectQuery("SELECT CAST(").WillReturnError(refused)
				} else {
					expectAsked(mock, "WSREP_ON", "OFF")
				}
				locks()
			})
			guard(locks)
			time.Sleep(time.Minute)
			guard(func() { expectNode(mock) })
			unlocks(t, lease, mock)
		})
	}
}

// started returns what NewRepository answers over a mocked MySQL whose table is as it should be.
func started(t *testing.T, isolation sqllock.Isolation, expect func(sqlmock.Sqlmock)) error {
	t.Helper()
	db, mock := matching(t, strings.HasPrefix)
	expect(mock)
	_, err := sqllock.NewRepository(t.Context(), db, dialect.MySQL(), &sqllock.RepositoryOptions{Isolation: isolation})
	must(t, mock.ExpectationsWereMet())
	mock.ExpectClose()
	must(t, db.Close())
	return err
}

// expectInspected has a server describe the table. It says nothing of its cluster yet.
func expectInspected(mock sqlmock.Sqlmock) { expectCollated(mock, "") }

// expectCollated is expectInspected for a column LOCK_KEY of a collation that may take two keys for one.
func expectCollated(mock sqlmock.Sqlmock, collation string) {
	expectDescribed(mock, "9.7.4")
	tables := sqlmock.NewRows([]string{"relation", "fact", "name", "text", "flags", "more", "cure"})
	if collation != "" {
		tables.AddRow("LOCK", "collation", "LOCK_KEY", collation, "merges", "", "")
	}
	mock.ExpectQuery("SELECT 'LOCK' AS relation").WillReturnRows(tables)
	expectTokens(mock)
}

// expectTokens has a server say that fencing tokens come from a table.
func expectTokens(mock sqlmock.Sqlmock) {
	mock.ExpectQuery("SELECT * FROM INT_LOCK_FENCE").WillReturnRows(sqlmock.NewRows([]string{"ID"}).AddRow(7))
}

// A node of Galera numbers a sequence by itself.
func TestCluster_GaleraRefusesASequence(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		facts []string
		want  error
	}{"Galera": {galeraNode, sqllock.ErrSchema}, "no cluster": {[]string{"WSREP_ON", "OFF"}, nil}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := started(t, sqllock.Serializable, func(mock sqlmock.Sqlmock) {
				expectDescribed(mock, "10.11.19-MariaDB")
				mock.ExpectQuery("SELECT * FROM INT_LOCK_FENCE").WillReturnRows(sqlmock.NewRows([]string{"next_not_cached_value", "minimum_value", "maximum_value", "increment", "cache_size", "cycle_option"}).
					AddRow([]byte("7"), []byte("1"), []byte("9223372036854775806"), []byte("1"), []byte("0"), []byte("0")))
				expectAsked(mock, test.facts...)
			})
			if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), "INT_LOCK_FENCE is a sequence") {
				t.Error(err)
			}
		})
	}
}

// Galera may repeat a statement that is a transaction of its own after it has sent the first result. So
// there the row is read by another statement, also where no tokens are drawn.
func TestCluster_GaleraWithoutTokens(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		facts []string
		two   bool
	}{"Galera": {galeraNode, true}, "no cluster": {[]string{"WSREP_ON", "OFF"}, false}} {
		runInBubble(t, name, func(t *testing.T) {
			_, mock, pool := mockedPool(t, dialect.MySQL(), sqllock.Autocommit)
			expectDescribed(mock, "10.11.19-MariaDB")
			expectAsked(mock, test.facts...)
			r := check.Value(sqllock.NewRepository(t.Context(), pool.DB, dialect.MySQL(), &sqllock.RepositoryOptions{
				DisableFencing: true, Isolation: sqllock.Autocommit,
			}))(t)
			if test.two {
				mock.ExpectExec("INSERT").WillReturnResult(driver.RowsAffected(1))
				mock.ExpectQuery("SELECT").WillReturnRows(sqlmock.NewRows(peeked).AddRow("holder", 0, 1000))
			} else {
				mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows([]string{"client_id", "age", "left", "token", "isolation"}).AddRow("holder", 0, 1000, 0, "repeatable-read"))
			}
			got := check.Value(r.Acquire(t.Context(), "k", "holder", ttl))(t)
			if !got.Acquired {
				t.Errorf("%+v", got)
			}
		})
	}
}

func TestCluster_NewRepository(t *testing.T) {
	t.Parallel()
	everywhere := []string{"group_replication_group_name", "aaaa", "group_replication_enforce_update_everywhere_checks", "ON"}
	for name, test := range map[string]struct {
		isolation sqllock.Isolation
		facts     []string
		want      error
		text      string
	}{
		"no cluster":                    {facts: []string{"WSREP_ON", "OFF", "WSREP_READY", "OFF", "WSREP_CLUSTER_STATUS", "Disconnected"}},
		"Galera":                        {facts: galeraNode},
		"Galera without a quorum":       {facts: []string{"WSREP_ON", "ON", "WSREP_READY", "OFF", "WSREP_CLUSTER_STATUS", "non-Primary"}, want: sqllock.ErrDatabase, text: "wsrep_cluster_status is non-Primary"},
		"Galera that is not ready":      {facts: []string{"WSREP_ON", "ON", "WSREP_READY", "OFF", "WSREP_CLUSTER_STATUS", "Primary"}, want: sqllock.ErrDatabase, text: "wsrep_ready is OFF"},
		"Galera that is switched off":   {facts: []string{"WSREP_ON", "OFF", "WSREP_CLUSTER_ADDRESS", "gcomm://a,b"}, want: sqllock.ErrDatabase, text: "wsrep_on is OFF"},
		"a library without a cluster":   {facts: []string{"WSREP_ON", "OFF", "WSREP_CLUSTER_ADDRESS", ""}},
		"Group Replication":             {facts: groupMember},
		"a plugin without a group":      {facts: []string{"group_replication_group_name", "", "group_replication_enforce_update_everywhere_checks", "ON", "member_state", "OFFLINE"}},
		"a server outside of its group": {facts: []string{"group_replication_group_name", "aaaa", "member_state", "OFFLINE"}, want: sqllock.ErrDatabase, text: "MEMBER_STATE is OFFLINE"},
		"several members accept writes": {facts: everywhere, want: sqllock.ErrInvalid, text: "set RepositoryOptions.Isolation to ReadCommitted"},
		"a primary that changes":        {facts: append([]string{"group_replication_single_primary_mode", "ON"}, everywhere...)},
		"several with READ COMMITTED":   {facts: everywhere, isolation: sqllock.ReadCommitted},
		"several without a transaction": {facts: everywhere, isolation: sqllock.Autocommit},
		"one outside of their group":    {facts: append([]string{"member_state", "ERROR"}, everywhere...), want: sqllock.ErrDatabase, text: "MEMBER_STATE is ERROR"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := started(t, test.isolation, func(mock sqlmock.Sqlmock) {
				expectInspected(mock)
				expectAsked(mock, test.facts...)
			})
			if !errors.Is(err, test.want) || err != nil && !strings.Contains(err.Error(), test.text) {
				t.Errorf("error %v, want %v: %s", err, test.want, test.text)
			}
		})
	}
}

// The end of the caller's context while the server is asked is an error.
func TestCluster_NewRepositoryEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	db, mock := matching(t, func(actual, _ string) bool {
		if strings.HasPrefix(actual, "SELECT CAST(") {
			cancel()
		}
		return true
	})
	expectInspected(mock)
	mock.ExpectQuery("").WillReturnError(errDenied)
	is(t, check.ErrorOf(sqllock.NewRepository(ctx, db, dialect.MySQL(), nil)), sqllock.ErrDatabase, context.Canceled)
	mock.ExpectClose()
	must(t, db.Close())
}

// What a server cannot answer is no error, or explains another one.
func TestCluster_ServerThatDoesNotSay(t *testing.T) {
	t.Parallel()
	errNoTable := &mysql.MySQLError{Number: 1146, Message: "Table 'INT_LOCK' doesn't exist"}
	for name, test := range map[string]struct {
		expect func(sqlmock.Sqlmock)
		want   error
		text   string
	}{
		// Not every user may read MEMBER_STATE, and not every server knows the tables that say something of
		// clusters.
		"a user who reads the variables": {func(mock sqlmock.Sqlmock) {
			expectInspected(mock)
			mock.ExpectQuery("SELECT CAST(").WillReturnError(errDenied)
			expectAsked(mock, groupMember[:4]...)
		}, nil, ""},
		"a user who reads nothing": {func(mock sqlmock.Sqlmock) {
			expectInspected(mock)
			mock.ExpectQuery("SELECT CAST(").WillReturnError(errDenied)
			mock.ExpectQuery("SELECT CAST(").WillReturnError(errDenied)
		}, nil, ""},
		// A node without a quorum refuses to read the table, and says why if it is asked.
		"a node without a quorum": {func(mock sqlmock.Sqlmock) {
			mock.ExpectQuery("SELECT server.version").WillReturnError(errNoQuorum)
			mock.ExpectQuery("SELECT").WillReturnError(errNoQuorum) // is it the wrong dialect?
			mock.ExpectQuery("SELECT").WillReturnError(errNoQuorum)
			expectAsked(mock, "WSREP_ON", "ON", "WSREP_READY", "OFF", "WSREP_CLUSTER_STATUS", "non-Primary")
		}, errNoQuorum, "wsrep_cluster_status is non-Primary"},
		// Such a server may lack the table. It must not be created there.
		"a server outside of its group": {func(mock sqlmock.Sqlmock) {
			mock.ExpectQuery("SELECT server.version").WillReturnError(errNoTable)
			expectAsked(mock, "group_replication_group_name", "aaaa", "member_state", "OFFLINE")
		}, errNoTable, "MEMBER_STATE is OFFLINE"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			err := started(t, sqllock.Serializable, test.expect)
			if !errors.Is(err, test.want) || errors.Is(err, sqllock.ErrSchema) ||
				err != nil && (!errors.Is(err, sqllock.ErrDatabase) || !strings.Contains(err.Error(), test.text)) {
				t.Error(err)
			}
		})
	}
}

// expectDescribed has a server of a version describe the table INT_LOCK.
func expectDescribed(mock sqlmock.Sqlmock, version string) {
	rows := sqlmock.NewRows([]string{"version", "session", "LOCK_KEY", "REGION", "CLIENT_ID", "CREATED_DATE", "EXPIRED_AFTER"})
	mock.ExpectQuery("SELECT server.version").WillReturnRows(rows.AddRow(version, "", nil, nil, nil, nil, nil))
}
