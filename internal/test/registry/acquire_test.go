package registry_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// A lock that was found taken is looked at before it is tried again: a refused attempt locks
// the row, which the holder has to renew.
func TestAcquire_TryAfterARefusedOneReadsFirst(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		rival := try(t, obtain(t, newRegistry(t, newRepository(t, s.db.DB, nil), nil), "k"))
		var mu sync.Mutex
		var ops []flaky.Op
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if !m.Done {
				mu.Lock()
				ops = append(ops, m.Op)
				mu.Unlock()
			}
			return nil
		})
		refused := func() []flaky.Op {
			ops = nil
			_, err := s.lock.TryLock(t.Context())
			var held *sqllock.HeldError
			if !errors.As(err, &held) || held.Holder != rival.Holder() {
				t.Fatal(err)
			}
			return ops
		}
		if first := refused(); !slices.Contains(first, flaky.Begin) {
			t.Errorf("the first try: %v", first)
		}
		for range 3 {
			check.Same(t, "another try", refused(), []flaky.Op{flaky.Query})
		}
		must(t, rival.Unlock(t.Context()))
		must(t, held(s).Unlock(t.Context()))
	})
}

// A row that is younger than a second is read by one statement: its process has written no name yet. Semaphores and read-write locks
// read the rows of many.
func TestPeek_AsksForNoNameOfAYoungRow(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		keys := make([]string, 20)
		for i := range keys {
			keys[i] = fmt.Sprint(i)
			must(t, check.ErrorOf(s.repository.Acquire(t.Context(), keys[i], newRepository(t, s.db.DB, nil).NewHolder(), time.Minute)))
		}
		s.connector.Follow(nil)
		if rows := check.Value(s.repository.PeekAll(t.Context(), keys...))(t); len(rows) != len(keys) {
			t.Error(rows)
		}
		check.Equal(t, "statements", s.connector.Count(), 1)
	})
}

// Acquisitions that failed, and whose rows were not there afterwards, cost Close two statements, however many there are: one
// deletes the rows, and one looks for those that a transaction has pinned.
func TestAcquire_HoldersWithoutARowCostCloseLittle(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			if m.Op == flaky.Commit && !m.Done {
				return errGone
			}
			return nil
		})
		registry := newRegistry(t, s.repository, &sqllock.RegistryOptions{TTL: time.Hour, NoRenew: true})
		for i := range 20 {
			is(t, check.ErrorOf(obtain(t, registry, fmt.Sprint(i)).TryLock(t.Context())), sqllock.ErrDatabase)
		}
		time.Sleep(2 * time.Minute)
		s.connector.Follow(nil)
		must(t, registry.Close(t.Context()))
		check.Equal(t, "statements to delete rows that were never written", s.connector.Count(), 2)
	})
}

// An acquire that is committed when its lease would be over gives no lease, and
// leaves no row.
func TestAcquire_LateCommitGivesNoLease(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s, rival := lateFixture(t, sqllock.Serializable)
		late := holdBack(s, flaky.Commit)
		var lease *sqllock.Lease
		answer := check.Begin(func() (err error) {
			lease, err = s.lock.TryLock(t.Context())
			return err
		})
		select {
		case <-late.reached:
		case err := <-answer:
			t.Fatalf("nothing was committed: %v", err)
		}
		time.AfterFunc(2*lateTTL, func() { close(late.let) })
		if err := <-answer; lease != nil || !errors.Is(err, sqllock.ErrDatabase) || errors.Is(err, sqllock.ErrLockLost) {
			t.Fatalf("%v, %v", lease, err)
		}
		next := locked(t, rival) // it is undone soon, if the answer was not waited for
		must(t, next.Unlock(t.Context()))
	})
}

// The same holds for a row that is written long after its caller has left, and whose deletion
// fails. There was no row to be deleted when the caller left, and that is forgotten after a
// time-to-live.
func TestAcquire_VeryLateRowIsDeletedBeforeTheNext(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Serializable)
		var begun, committed atomic.Bool
		s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
			switch {
			case m.Op == flaky.Begin && !m.Done && begun.CompareAndSwap(false, true):
				time.Sleep(lateTTL * 3 / 2)
			case m.Op == flaky.Commit && m.Done:
				committed.Store(true)
			case m.Op == flaky.Exec && committed.Load():
				return errGone
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), lateTTL/10)
		defer cancel()
		is(t, check.ErrorOf(s.repository.Acquire(ctx, "k", s.repository.NewHolder(), lateTTL)), context.DeadlineExceeded)
		time.Sleep(lateTTL * 7 / 4)
		s.connector.Follow(nil)
		row, ok, err := s.repository.Peek(t.Context(), "k")
		must(t, err)
		if !ok || row.Expired() {
			t.Fatalf("the test is to leave a row: %+v", row)
		}
		got := check.Value(s.repository.Acquire(t.Context(), "k", s.repository.NewHolder(), lateTTL))(t)
		if !got.Acquired {
			t.Error(got)
		}
	})
}

// mocked returns a repository over a database that answers what the test says: for
// what a real server cannot be made to do on demand.
func mocked(t *testing.T, d dialect.Dialect, isolation sqllock.Isolation) (*sqllock.Repository, sqlmock.Sqlmock) {
	t.Helper()
	r, mock, _ := mockedPool(t, d, isolation)
	return r, mock
}

// mockedPool is mocked, and returns the pool, too.
func mockedPool(t *testing.T, d dialect.Dialect, isolation sqllock.Isolation) (*sqllock.Repository, sqlmock.Sqlmock, *sqlx.DB) {
	t.Helper()
	return mockedWith(t, d, sqllock.RepositoryOptions{Isolation: isolation})
}

// mockedWith is mockedPool with other options.
func mockedWith(t *testing.T, d dialect.Dialect, o sqllock.RepositoryOptions) (*sqllock.Repository, sqlmock.Sqlmock, *sqlx.DB) {
	t.Helper()
	// The first word distinguishes the statements; their text has golden files.
	db, mock := matching(t, func(actual, verb string) bool {
		if _, behind, ok := strings.Cut(actual, "*/ "); ok {
			actual = behind // MySQL's limit to lock waits
		}
		return strings.HasPrefix(actual, verb)
	})
	spare := check.Value(db.Conn(t.Context()))(t) // the mock ends with its last connection
	t.Cleanup(func() {
		must(t, mock.ExpectationsWereMet())
		_ = spare.Close()
		_ = db.Close() // the mock did not expect it
	})
	pool := sqlx.NewDb(db, "sqlmock")
	o.Layout = dialect.Spring7
	r := check.Value(sqllock.NewRepository(t.Context(), pool.DB, d, &o))(t)
	return r, mock, pool
}

// expectFree has the row read before an attempt, as a MySQL that has not been asked whether it
// is Oracle's or MariaDB, and there is none.
func expectFree(mock sqlmock.Sqlmock) {
	mock.ExpectQuery("SELECT").WillReturnRows(sqlmock.NewRows(peeked))
}

var (
	errSerialization = &pq.Error{Code: "40001", Message: "could not serialize access"}
	drawn            = []string{"nextval"}
	peeked           = []string{"client_id", "age", "left"}
)

// An argument matches any text, and keeps it.
type argument struct{ value string }

// Match implements sqlmock.Argument.
func (a *argument) Match(v driver.Value) bool {
	text, ok := v.(string)
	a.value = text
	return ok
}

// A serialization failure may come as late as COMMIT (Spring's GH-3567). Group Replication fails
// certification there, with error 1180.
func TestAcquire_LostRaceIsTriedAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dialect dialect.Dialect
		expect  func(sqlmock.Sqlmock)
		lost    error
		token   int64
	}{
		"PostgreSQL": {dialect.Postgres(), func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin()
			mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(7))
		}, errSerialization, 7 * tokensPerNumber},
		"Group Replication": {dialect.MySQL(), func(mock sqlmock.Sqlmock) {
			expectFree(mock)
			mock.ExpectBegin()
			mock.ExpectExec("INSERT").WillReturnResult(driver.RowsAffected(1))
			mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnResult(sqlmock.NewResult(7, 1))
		}, &mysql.MySQLError{Number: 1180}, 7 * tokensPerNumber},
	} {
		runInBubble(t, name, func(t *testing.T) {
			r, mock := mocked(t, test.dialect, sqllock.Serializable)
			for _, commit := range []error{test.lost, test.lost, nil} {
				test.expect(mock)
				mock.ExpectCommit().WillReturnError(commit)
			}
			got, err := r.Acquire(t.Context(), "k", r.NewHolder(), ttl)
			if err != nil || !got.Acquired || got.Token != test.token {
				t.Errorf("%+v, %v", got, err)
			}
		})
	}
}

// Losing every race means not acquired. It is no database error, and has an end.
func TestAcquire_RacesWithoutEndAreNotAcquired(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Autocommit)
		for range 11 {
			mock.ExpectQuery("INSERT").WillReturnError(errSerialization)
		}
		mock.ExpectQuery("SELECT").WillReturnRows(sqlmock.NewRows(peeked).AddRow("rival", 0, ttl.Microseconds()))
		registry := newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true})
		_, err := obtain(t, registry, "k").TryLock(t.Context())
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Holder != "rival" || errors.Is(err, sqllock.ErrDatabase) {
			t.Fatal(err)
		}
	})
}

// After an unknown outcome the row of the holder is deleted, maybe late: so the lock is tried again by
// another holder.
func TestAcquire_HolderIsNotUsedAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		dialect dialect.Dialect
		expect  func(mock sqlmock.Sqlmock, deleted *argument)
		atClose func(mock sqlmock.Sqlmock, deleted string)
	}{
		"a draw of a token that loses a race": {dialect.MySQL(), func(mock sqlmock.Sqlmock, deleted *argument) {
			expectFree(mock)
			mock.ExpectExec("INSERT INTO INT_LOCK ").WillReturnResult(driver.RowsAffected(1))
			mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnError(&mysql.MySQLError{Number: 1213})
			mock.ExpectExec("DELETE FROM INT_LOCK ").WithArgs("DEFAULT", sqlmock.AnyArg(), deleted).WillReturnResult(driver.RowsAffected(1))
			expectFree(mock)
			mock.ExpectExec("INSERT INTO INT_LOCK ").WillReturnResult(driver.RowsAffected(1))
			mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnResult(sqlmock.NewResult(7, 1))
		}, func(sqlmock.Sqlmock, string) {}},
		// The server may still apply what was sent first, before its connection was closed.
		"a refusal of what was sent again": {dialect.Postgres().WithoutScans(), func(mock sqlmock.Sqlmock, deleted *argument) {
			mock.ExpectQuery("INSERT").WillReturnError(io.ErrUnexpectedEOF)
			mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn))
			mock.ExpectExec("DELETE FROM INT_LOCK ").WithArgs("DEFAULT", sqlmock.AnyArg(), deleted).WillReturnError(errGone)
			mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
		}, func(mock sqlmock.Sqlmock, deleted string) { // Close looks for it again
			mock.ExpectExec("DELETE FROM INT_LOCK ").WithArgs("DEFAULT", sqlmock.AnyArg(), deleted).WillReturnResult(driver.RowsAffected(0))
		}},
	} {
		runInBubble(t, name, func(t *testing.T) {
			r, mock := mocked(t, test.dialect, sqllock.Autocommit)
			var deleted argument
			test.expect(mock, &deleted)
			lease := try(t, obtain(t, newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}), "k"))
			if deleted.value == "" || lease.Holder() == deleted.value {
				t.Errorf("%q was deleted, %q has the lease", deleted.value, lease.Holder())
			}
			mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnResult(driver.RowsAffected(1))
			test.atClose(mock, deleted.value)
			must(t, lease.Unlock(t.Context()))
		})
	}
}

// What a message has answered before its connection was closed does not count if it is sent again.
func TestAcquire_ResentMessageHasItsOwnAnswer(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock, _ := mockedWith(t, dialect.MySQL(), sqllock.RepositoryOptions{Isolation: sqllock.Serializable, MultiStatements: true})
		outcome := []string{"acquired", "number"}
		expectFree(mock)
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(outcome).AddRow(1, 7).AddRow(1, 7).
			RowError(1, &mysql.MySQLError{Number: 1053, Message: "Server shutdown in progress"}))
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(outcome).AddRow(1, 8))
		got, err := r.Acquire(t.Context(), "k", r.NewHolder(), ttl)
		if err != nil || !got.Acquired || got.Token != 8*tokensPerNumber {
			t.Errorf("%+v, %v", got, err)
		}
	})
}

// Each kind of database error has a sentinel of its own, and ends the wait at once.
func TestAcquire_DatabaseErrorHasItsSentinel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ err, want error }{
		"read-only": {&pq.Error{Code: "25006"}, sqllock.ErrReadOnly},
		"standby":   {&pq.Error{Code: "0A000", Message: "cannot use serializable mode in a hot standby"}, sqllock.ErrReadOnly},
		"no table":  {&pq.Error{Code: "42P01"}, sqllock.ErrSchema},
		"layout":    {&pq.Error{Code: "23502"}, sqllock.ErrSchema},
		"shutdown":  {&pq.Error{Code: "57P01"}, sqllock.ErrDatabase},
		"gone":      {errGone, sqllock.ErrDatabase},
		"MySQL":     {&mysql.MySQLError{Number: 1290}, sqllock.ErrReadOnly},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			d, isMySQL := dialect.Postgres(), name == "MySQL"
			if isMySQL {
				d = dialect.MySQL()
			}
			r, mock := mocked(t, d, sqllock.Serializable)
			if isMySQL {
				expectFree(mock)
				mock.ExpectBegin()
				mock.ExpectExec("INSERT").WillReturnError(test.err)
			} else {
				mock.ExpectBegin()
				mock.ExpectQuery("INSERT").WillReturnError(test.err)
			}
			mock.ExpectRollback()
			if name == "shutdown" { // a transaction whose connection is closed is run once more
				mock.ExpectBegin()
				mock.ExpectQuery("INSERT").WillReturnError(test.err)
				mock.ExpectRollback()
			}
			_, err := obtain(t, newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}), "orders/42").Lock(t.Context())
			is(t, err, test.want, sqllock.ErrDatabase, test.err)
			if errors.Is(err, sqllock.ErrNotAcquired) || !strings.Contains(err.Error(), `"orders/42"`) {
				t.Error(err)
			}
		})
	}
}

// A list that breaks off is no list.
func TestList_BrokenIsADatabaseError(t *testing.T) {
	t.Parallel()
	columns := []string{"region", "lock_key", "client_id", "age", "left"}
	row := []driver.Value{"r", "k", "c", 1, 1}
	for name, rows := range map[string]*sqlmock.Rows{
		"at once":  nil,
		"later":    sqlmock.NewRows(columns).AddRow(row...).AddRow(row...).RowError(1, errGone),
		"nonsense": sqlmock.NewRows(columns).AddRow("r", "k", "c", "soon", 1),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, mock := mocked(t, dialect.Postgres(), sqllock.Serializable)
			query := mock.ExpectQuery("SELECT")
			if rows == nil {
				query.WillReturnError(errGone)
			} else {
				query.WillReturnRows(rows)
			}
			if list, err := r.List(t.Context()); !errors.Is(err, sqllock.ErrDatabase) || list != nil {
				t.Fatal(list, err)
			}
		})
	}
}

// tokensPerNumber is how many fencing tokens lie between two numbers of the database.
const tokensPerNumber = 65536

// Without a transaction an attempt that fails may have been applied, unless the server refuses to
// write at all. The error still says what is wrong with the database.
func TestAcquire_WithoutATransactionSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		err, want error
		applied   bool // perhaps
	}{
		"NoTable":  {&pq.Error{Code: "42P01"}, sqllock.ErrSchema, true},
		"ReadOnly": {&pq.Error{Code: "25006"}, sqllock.ErrReadOnly, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, mock := mocked(t, dialect.Postgres(), sqllock.Autocommit)
			mock.ExpectQuery("INSERT").WillReturnError(test.err)
			if test.applied {
				mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnError(test.err)
			}
			is(t, check.ErrorOf(r.Acquire(t.Context(), "k", r.NewHolder(), ttl)), test.want)
		})
	}
}

// A refusal says for how long the call has waited, and that of a single try does not.
func TestTryLockFor_SaysHowLongItWaited(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		s := newFixture(t, sqllock.Autocommit)
		rival := obtain(t, newRegistry(t, newRepository(t, s.db.DB, nil), &sqllock.RegistryOptions{TTL: ttl}), "k")
		must(t, check.ErrorOf(s.lock.Lock(t.Context())))
		for wait, want := range map[time.Duration]string{0: "unless it is renewed", 2 * time.Second: "; waited 2s"} {
			var held *sqllock.HeldError
			_, err := rival.TryLockFor(t.Context(), wait)
			if !errors.As(err, &held) || held.Waited != wait || !strings.HasSuffix(err.Error(), want) {
				t.Errorf("%+v: %v", held, err)
			}
		}
	})
}
