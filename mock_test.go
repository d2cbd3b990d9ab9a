package sqllock_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

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
	verb := sqlmock.QueryMatcherFunc(func(expected, actual string) error {
		if _, behind, ok := strings.Cut(actual, "*/ "); ok {
			actual = behind // MySQL's limit to lock waits
		}
		if !strings.HasPrefix(actual, expected) {
			return errors.New(actual)
		}
		return nil
	})
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(verb))
	must(t, err)
	spare, err := db.Conn(t.Context()) // the mock ends with its last connection
	must(t, err)
	t.Cleanup(func() {
		must(t, mock.ExpectationsWereMet())
		must(t, spare.Close())
		_ = db.Close() // the mock did not expect it
	})
	pool := sqlx.NewDb(db, "sqlmock")
	o.Layout = dialect.Spring7
	r, err := sqllock.NewRepository(t.Context(), pool.DB, d, &o)
	must(t, err)
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

// A serialization failure may come as late as COMMIT (Spring's GH-3567).
func TestASerializationFailureAtCommitIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Serializable)
		holder := r.NewHolder()
		for _, commit := range []error{errSerialization, errSerialization, nil} {
			mock.ExpectBegin()
			mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
			mock.ExpectCommit().WillReturnError(commit)
		}
		got, err := r.Acquire(t.Context(), "k", holder, ttl)
		must(t, err)
		if !got.Acquired {
			t.Fatal("not acquired")
		}
	})
}

// Group Replication fails certification with error 1180, at COMMIT.
func TestAFailedCertificationIsTriedAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.MySQL(), sqllock.Serializable)
		holder := r.NewHolder()
		for _, commit := range []error{&mysql.MySQLError{Number: 1180}, nil} {
			expectFree(mock)
			mock.ExpectBegin()
			mock.ExpectExec("INSERT").WillReturnResult(driver.RowsAffected(1))
			mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnResult(sqlmock.NewResult(7, 1))
			mock.ExpectCommit().WillReturnError(commit)
		}
		got, err := r.Acquire(t.Context(), "k", holder, ttl)
		must(t, err)
		if !got.Acquired || got.Token != 7*tokensPerNumber {
			t.Fatalf("%+v", got)
		}
	})
}

// Losing every race means not acquired. It is no database error, and has an end.
func TestRacesWithoutEndAreNotAcquired(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Autocommit)
		for range 11 {
			mock.ExpectQuery("INSERT").WillReturnError(errSerialization)
		}
		mock.ExpectQuery("SELECT").WillReturnRows(sqlmock.NewRows(peeked).AddRow("rival", 0, ttl.Microseconds()))
		registry := newRegistry(t, r, nil)
		_, err := obtain(t, registry, "k").TryLock(t.Context())
		var held *sqllock.HeldError
		if !errors.As(err, &held) || held.Holder != "rival" || errors.Is(err, sqllock.ErrDatabase) {
			t.Fatal(err)
		}
	})
}

// A draw of a token that loses a race leaves it open what the statement before it has done.
// Its row is deleted, maybe late: so the lock is tried again by another holder.
func TestAHolderIsNotUsedAgainAfterAnUnknownOutcome(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.MySQL(), sqllock.Autocommit)
		var deleted argument
		expectFree(mock)
		mock.ExpectExec("INSERT INTO INT_LOCK ").WillReturnResult(driver.RowsAffected(1))
		mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnError(&mysql.MySQLError{Number: 1213})
		mock.ExpectExec("DELETE").WithArgs("DEFAULT", sqlmock.AnyArg(), &deleted).WillReturnResult(driver.RowsAffected(1))
		expectFree(mock)
		mock.ExpectExec("INSERT INTO INT_LOCK ").WillReturnResult(driver.RowsAffected(1))
		mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnResult(sqlmock.NewResult(7, 1))
		lease, err := obtain(t, newRegistry(t, r, nil), "k").TryLock(t.Context())
		must(t, err)
		if deleted.value == "" || lease.Holder() == deleted.value {
			t.Errorf("%q was deleted, %q has the lease", deleted.value, lease.Holder())
		}
		mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(1))
		must(t, lease.Unlock(t.Context()))
	})
}

// So it is after an attempt that was sent again, because its connection was closed, and was refused then: the
// server may still apply what was sent first.
func TestAHolderIsNotUsedAgainAfterARefusalOfWhatWasSentAgain(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Autocommit)
		var deleted argument
		mock.ExpectQuery("INSERT").WillReturnError(io.ErrUnexpectedEOF)
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn))
		mock.ExpectExec("DELETE").WithArgs("DEFAULT", sqlmock.AnyArg(), &deleted).WillReturnError(errGone)
		mock.ExpectExec("DELETE").WithArgs("DEFAULT", sqlmock.AnyArg(), &deleted).WillReturnResult(driver.RowsAffected(0))
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
		lease, err := obtain(t, newRegistry(t, r, nil), "k").TryLock(t.Context())
		must(t, err)
		if deleted.value == "" || lease.Holder() == deleted.value {
			t.Errorf("%q was deleted, %q has the lease", deleted.value, lease.Holder())
		}
		mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(1))
		must(t, lease.Unlock(t.Context()))
	})
}

// What a message has answered before its connection was closed does not count if it is sent again.
func TestAMessageThatIsSentAgainHasItsOwnAnswer(t *testing.T) {
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

// A COMMIT whose answer is lost may have been applied: the row must not stay.
func TestALostCommitIsUndone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Serializable)
		holder := r.NewHolder()
		mock.ExpectBegin()
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
		mock.ExpectCommit().WillReturnError(errGone)
		mock.ExpectExec("DELETE").WithArgs("DEFAULT", sqlmock.AnyArg(), holder).WillReturnResult(driver.RowsAffected(1))
		if _, err := r.Acquire(t.Context(), "k", holder, ttl); !errors.Is(err, sqllock.ErrDatabase) || !errors.Is(err, errGone) {
			t.Fatal(err)
		}
	})
}

// If the row cannot be deleted at once it is before the next acquisition, which has
// another holder: the first deletion may still be on its way.
func TestALostCommitIsUndoneLater(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Serializable)
		old, holder := r.NewHolder(), r.NewHolder()
		mock.ExpectBegin()
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
		mock.ExpectCommit().WillReturnError(errGone)
		mock.ExpectExec("DELETE").WillReturnError(errGone)
		_, err := r.Acquire(t.Context(), "k", old, ttl)
		if !errors.Is(err, errGone) {
			t.Fatal(err)
		}
		mock.ExpectExec("DELETE").WithArgs("DEFAULT", sqlmock.AnyArg(), old).WillReturnResult(driver.RowsAffected(1))
		mock.ExpectBegin()
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
		mock.ExpectCommit()
		_, err = r.Acquire(t.Context(), "k", holder, ttl)
		must(t, err)
	})
}

// An attempt that failed before COMMIT has left nothing to undo.
func TestAFailedStatementNeedsNoUndoing(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Serializable)
		mock.ExpectBegin()
		mock.ExpectQuery("INSERT").WillReturnError(errGone)
		mock.ExpectRollback()
		if _, err := r.Acquire(t.Context(), "k", r.NewHolder(), ttl); !errors.Is(err, sqllock.ErrDatabase) {
			t.Fatal(err)
		}
	})
}

// Each kind of database error has a sentinel of its own, and ends the wait at once.
func TestEachDatabaseErrorHasItsSentinel(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ err, want error }{
		"read-only": {&pq.Error{Code: "25006"}, sqllock.ErrReadOnly},
		"standby":   {&pq.Error{Code: "0A000", Message: "cannot use serializable mode in a hot standby"}, sqllock.ErrReadOnly},
		"no table":  {&pq.Error{Code: "42P01"}, sqllock.ErrSchema},
		"layout":    {&pq.Error{Code: "23502"}, sqllock.ErrSchema},
		"shutdown":  {&pq.Error{Code: "57P01"}, sqllock.ErrDatabase},
		"gone":      {errGone, sqllock.ErrDatabase},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r, mock := mocked(t, dialect.Postgres(), sqllock.Serializable)
			mock.ExpectBegin()
			mock.ExpectQuery("INSERT").WillReturnError(test.err)
			mock.ExpectRollback()
			_, err := obtain(t, newRegistry(t, r, nil), "orders/42").Lock(t.Context())
			for _, want := range []error{test.want, sqllock.ErrDatabase, test.err} {
				if !errors.Is(err, want) {
					t.Errorf("%v is not %v", err, want)
				}
			}
			if errors.Is(err, sqllock.ErrNotAcquired) || !strings.Contains(err.Error(), `"orders/42"`) {
				t.Error(err)
			}
		})
	}
}

// MySQL counts a row that was renewed to the instant it had already as unchanged.
func TestARenewalThatChangedNothingIsLookedUp(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.MySQL(), sqllock.Autocommit)
		for _, count := range []int{1, 0} {
			mock.ExpectExec("UPDATE").WillReturnResult(driver.RowsAffected(0))
			mock.ExpectQuery("SELECT COUNT").WillReturnRows(sqlmock.NewRows([]string{"n"}).AddRow(count))
			renewed, err := r.Renew(t.Context(), "k", "holder", ttl)
			must(t, err)
			if renewed != (count == 1) {
				t.Fatalf("renewed %v with %d rows", renewed, count)
			}
		}
	})
}

// Spring's testTransientDataAccessException: a release that lost a race is tried
// again, and ends unlocked.
func TestUnlockTriesAgainAfterARace(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Autocommit)
		mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
		lease, err := obtain(t, newRegistry(t, r, nil), "k").TryLock(t.Context())
		must(t, err)
		mock.ExpectExec("DELETE").WillReturnError(&pq.Error{Code: "40P01"})
		mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(1))
		must(t, lease.Unlock(t.Context()))
	})
}

// An answer that comes when the lease would be over gives none, and is not waited
// for much longer.
func TestAnAcquisitionThatTookTooLongIsNone(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.Postgres(), sqllock.Autocommit)
		const ttl = 300 * time.Millisecond // also how long there is to delete the row
		mock.ExpectQuery("INSERT").WillDelayFor(ttl).WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
		mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(1))
		registry := newRegistry(t, r, &sqllock.RegistryOptions{TTL: ttl})
		lease, err := obtain(t, registry, "k").TryLock(t.Context())
		if lease != nil || !errors.Is(err, sqllock.ErrDatabase) || errors.Is(err, sqllock.ErrLockLost) || errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(lease, err)
		}
	})
}

// If the database does not answer, no call takes longer than the lease lasts.
func TestABlackHole(t *testing.T) {
	t.Parallel()
	for name, call := range map[string]func(context.Context, *sqllock.Lease) error{
		"Unlock": func(ctx context.Context, l *sqllock.Lease) error { return l.Unlock(ctx) },
		"Renew":  func(ctx context.Context, l *sqllock.Lease) error { return l.Renew(ctx) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T) {
				r, mock := mocked(t, dialect.Postgres(), sqllock.Autocommit)
				mock.ExpectQuery("INSERT").WillReturnRows(sqlmock.NewRows(drawn).AddRow(1))
				registry := newRegistry(t, r, &sqllock.RegistryOptions{TTL: 200 * time.Millisecond})
				lease, err := obtain(t, registry, "k").TryLock(t.Context())
				must(t, err)
				mock.ExpectExec(map[string]string{"Unlock": "DELETE", "Renew": "UPDATE"}[name]).
					WillDelayFor(time.Hour).WillReturnResult(driver.RowsAffected(1))
				if name == "Unlock" { // what Close does about the row
					mock.ExpectExec("DELETE").WillReturnResult(driver.RowsAffected(0))
				}
				err = call(t.Context(), lease)
				if !errors.Is(err, sqllock.ErrDatabase) && !errors.Is(err, sqllock.ErrLockLost) {
					t.Fatal(err)
				}
				if time.Until(lease.Deadline()) > 0 {
					t.Fatal("gave up early")
				}
			})
		})
	}
}

// MySQL's acquire statement fails like any other.
func TestAFailedUpsertIsADatabaseError(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		r, mock := mocked(t, dialect.MySQL(), sqllock.Serializable)
		expectFree(mock)
		mock.ExpectBegin()
		mock.ExpectExec("INSERT").WillReturnError(&mysql.MySQLError{Number: 1290})
		mock.ExpectRollback()
		if _, err := r.Acquire(t.Context(), "k", r.NewHolder(), ttl); !errors.Is(err, sqllock.ErrReadOnly) {
			t.Fatal(err)
		}
	})
}

// A list that breaks off is no list.
func TestABrokenListIsADatabaseError(t *testing.T) {
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

// Without a transaction an attempt that fails may have been applied, unless the server refuses to
// write at all. The error still says what is wrong with the database.
func TestAnAttemptWithoutATransactionSaysWhatIsWrong(t *testing.T) {
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
				mock.ExpectExec("DELETE").WillReturnError(test.err)
			}
			if _, err := r.Acquire(t.Context(), "k", r.NewHolder(), ttl); !errors.Is(err, test.want) {
				t.Error(err)
			}
		})
	}
}
