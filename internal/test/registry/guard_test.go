package registry_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
)

// What ExecuteLockedTx says of its COMMIT is what became of it.
func TestGuard_Commit(t *testing.T) {
	t.Parallel()
	const cut, refused, refusedAndEnded, ended = "the driver cuts it short", "refused", "refused, and the context ends", "the context ends before it"
	for name, test := range map[string]struct {
		committed bool
		is, isNot []error
	}{
		// pgx says no more than that the context has ended, also when the server has committed.
		cut: {true, []error{sqllock.ErrDatabase}, nil},
		// A refusal of the database is none: nothing was committed.
		refused:         {false, []error{busy{}}, nil},
		refusedAndEnded: {false, []error{context.Canceled}, []error{sqllock.ErrDatabase}},
		// Before COMMIT is sent the transaction is rolled back, and that is known.
		ended: {false, []error{context.Canceled}, []error{sqllock.ErrDatabase}},
	} {
		runInBubble(t, name, func(t *testing.T) {
			s := newFixture(t, sqllock.Serializable)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			err := s.registry.ExecuteLockedTx(ctx, "k", s.pool.DB, nil, func(ctx context.Context, tx *sql.Tx) error {
				_, err := tx.ExecContext(ctx, "INSERT INTO INT_LOCK_FENCE (ID) VALUES (1000)")
				must(t, err)
				if name == ended {
					cancel()
					for err == nil { // until the end has come to the transaction
						_, err = tx.ExecContext(t.Context(), "SELECT 1") //nolint:contextcheck // fn's has ended
					}
					return nil
				}
				s.connector.Follow(func(_ context.Context, m flaky.Moment) error {
					if m.Op != flaky.Commit || name == cut && !m.Done {
						return nil
					}
					s.connector.Follow(nil)
					if name != refused {
						cancel()
					}
					if name == cut {
						return ctx.Err()
					}
					return busy{}
				})
				return nil
			})
			is(t, err, test.is...)
			check.IsNot(t, err, test.isNot...)
			var n int
			must(t, s.db.DB.Get(&n, "SELECT COUNT(*) FROM INT_LOCK_FENCE WHERE ID = 1000"))
			if (n == 1) != test.committed {
				t.Errorf("%d rows, and the error is: %v", n, err)
			}
		})
	}
}

// Where one guarded transaction follows the other, renewals find the row pinned each time. So a
// guard has the lease renewed first, once that is overdue.
func TestGuard_RenewsAnOverdueLease(t *testing.T) {
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
		mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnResult(sqlmock.NewResult(0, 1))
		began := lease.Deadline()
		guard() // sends nothing else
		time.Sleep(renewalTTL/3 + time.Second)
		guard() // another try is to come
		time.Sleep(renewalTTL/15 + time.Second)
		check.Equal(t, "extended by", lease.Deadline().Sub(began), 0)
		guard()
		if extended := lease.Deadline().Sub(began); extended < renewalTTL/3 {
			t.Errorf("extended by %v", extended)
		}
		guard()
		must(t, lease.Unlock(t.Context()))
	})
}

var (
	errDeadlock = &mysql.MySQLError{Number: 1213, Message: "Deadlock found when trying to get lock"}
	errNoQuorum = &mysql.MySQLError{Number: 1047, Message: "WSREP has not yet prepared node for application use"}
)

var _, _ sqllock.Tx = (*sql.Tx)(nil), (*sqlx.Tx)(nil)

func TestGuard_NeedsATransaction(t *testing.T) {
	t.Parallel()
	lease := check.Value(newRegistry(t, newRepository(t, migrated(t).DB, nil), nil).TryLock(t.Context(), "k"))(t)
	for name, tx := range map[string]sqllock.Tx{"nil": nil, "a nil *sql.Tx": (*sql.Tx)(nil), "a nil *sqlx.Tx": (*sqlx.Tx)(nil)} {
		if err := lease.Guard(t.Context(), tx); !errors.Is(err, sqllock.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
	is(t, sqllock.GuardFunc[*sql.Row](t.Context(), lease, nil), sqllock.ErrInvalid)
	must(t, lease.Unlock(t.Context()))
}

// What a pgx.Tx does is in the contract. Here is any function that returns a row.
func TestGuard_Func(t *testing.T) {
	t.Parallel()
	db := migrated(t)
	repository := newRepository(t, db.DB, nil)
	lease := check.Value(newRegistry(t, repository, &sqllock.RegistryOptions{NoRenew: true}).TryLock(t.Context(), "k"))(t)
	tx := check.Value(db.DB.BeginTx(t.Context(), nil))(t)
	must(t, sqllock.GuardFunc(t.Context(), lease, tx.QueryRowContext))
	must(t, tx.Commit())
	is(t, sqllock.GuardFunc(t.Context(), lease, answers(errDeadlock)), sqllock.ErrDatabase, errDeadlock)
	deleted, err := repository.Delete(t.Context(), "k", lease.Holder())
	if err != nil || !deleted {
		t.Fatal(deleted, err)
	}
	is(t, sqllock.GuardFunc(t.Context(), lease, answers(fmt.Errorf("wrapped: %w", sql.ErrNoRows))), sqllock.ErrLockLost)
}

// answers returns a function whose rows cannot be scanned.
func answers(err error) func(context.Context, string, ...any) noRow {
	return func(context.Context, string, ...any) noRow { return noRow{err} }
}

type noRow struct{ err error }

func (r noRow) Scan(...any) error { return r.err }

// A transaction of another database, which has a lock table as well, is not committed.
func TestGuard_TransactionOfAnotherDatabase(t *testing.T) {
	t.Parallel()
	db, other := migrated(t), migrated(t)
	lease := check.Value(newRegistry(t, newRepository(t, db.DB, nil), nil).TryLock(t.Context(), "k"))(t)
	tx := check.Value(other.DB.BeginTx(t.Context(), nil))(t)
	wrong := map[string]error{
		"Guard":     lease.Guard(t.Context(), tx),
		"GuardFunc": sqllock.GuardFunc(t.Context(), lease, tx.QueryRowContext),
	}
	must(t, tx.Rollback())
	must(t, lease.Unlock(t.Context()))
	wrong["ExecuteLockedTx"] = newRegistry(t, newRepository(t, db.DB, nil), nil).ExecuteLockedTx(t.Context(), "k", other.DB.DB, nil, func(context.Context, *sql.Tx) error {
		panic("must not run")
	})
	for name, err := range wrong {
		if !errors.Is(err, sqllock.ErrInvalid) || !strings.Contains(err.Error(), "in the database of the lock") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A guard must change the row on a cluster and count what it has changed. A query for a row cannot.
func TestGuard_FuncIsRefusedOnMySQL(t *testing.T) {
	t.Parallel()
	r, mock := mocked(t, dialect.MySQL(), sqllock.Autocommit)
	lease := mockedLease(t, r, mock)
	if err := sqllock.GuardFunc(t.Context(), lease, answers(nil)); !errors.Is(err, sqllock.ErrInvalid) || errors.Is(err, sqllock.ErrDatabase) {
		t.Error(err)
	}
	mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnResult(driver.RowsAffected(1))
	must(t, lease.Unlock(t.Context()))
}

// guarding has a mocked MySQL grant a lock, and expects its release after what the test
// expects. It returns what ExecuteLockedTx returns.
func guarding(t *testing.T, expect func(sqlmock.Sqlmock)) (ran int, err error) {
	t.Helper()
	r, mock, pool := mockedPool(t, dialect.MySQL(), sqllock.Autocommit)
	expectFree(mock)
	mock.ExpectExec("INSERT").WillReturnResult(driver.RowsAffected(1))
	mock.ExpectExec("INSERT INTO INT_LOCK_FENCE").WillReturnResult(sqlmock.NewResult(7, 1))
	expect(mock)
	mock.ExpectExec("DELETE FROM INT_LOCK ").WillReturnResult(driver.RowsAffected(1))
	err = newRegistry(t, r, &sqllock.RegistryOptions{NoRenew: true}).ExecuteLockedTx(t.Context(), "k", pool.DB, nil, func(context.Context, *sql.Tx) error {
		ran++
		return nil
	})
	return ran, err
}

// expectAsked has the first Guard of a repository that has not asked its server before ask what
// cluster it belongs to. facts are names and values in turn; none are a server of its own.
func expectAsked(mock sqlmock.Sqlmock, facts ...string) {
	rows := sqlmock.NewRows([]string{"name", "value"})
	for i := 0; i < len(facts); i += 2 {
		rows.AddRow(facts[i], facts[i+1])
	}
	mock.ExpectQuery("SELECT CAST(VARIABLE_NAME").WillReturnRows(rows)
}

func rowsOf(n int) *sqlmock.Rows {
	rows := sqlmock.NewRows([]string{"n"})
	for range n {
		rows.AddRow(1)
	}
	return rows
}

// What becomes of a guarded transaction on MySQL.
func TestGuard_OnMySQL(t *testing.T) {
	t.Parallel()
	// Nothing has happened in a transaction whose Guard has lost a race, so it is begun again.
	lost := func(mock sqlmock.Sqlmock, times int) {
		for n := range times {
			mock.ExpectBegin()
			if n == 0 {
				expectAsked(mock)
			}
			mock.ExpectQuery("SELECT").WillReturnError(errDeadlock)
			mock.ExpectRollback()
		}
	}
	for name, test := range map[string]struct {
		expect func(sqlmock.Sqlmock)
		ran    int
		want   error // nil, or what the ErrDatabase says
	}{
		"three races lost": {func(mock sqlmock.Sqlmock) {
			lost(mock, 3)
			mock.ExpectBegin()
			mock.ExpectQuery("SELECT").WillReturnRows(rowsOf(1))
			mock.ExpectCommit()
		}, 1, nil},
		"all races lost": {func(mock sqlmock.Sqlmock) { lost(mock, 11) }, 0, errDeadlock},
		// MySQL's locking reads see what was committed last. A row that is held but not found there is
		// on another node, and the transaction's lags behind: no mistake of the caller's.
		"a node that lags behind": {func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin()
			expectAsked(mock)
			mock.ExpectQuery("SELECT").WillReturnRows(rowsOf(0)) // Guard
			mock.ExpectQuery("SELECT").WillReturnRows(rowsOf(1)) // the row is held
			mock.ExpectRollback()
		}, 0, sqllock.ErrDatabase},
		// A refused COMMIT leaves the transaction open on a node without a quorum. The application's pool does
		// not get the connection back.
		"a node without a quorum": {func(mock sqlmock.Sqlmock) {
			mock.ExpectBegin()
			expectAsked(mock)
			mock.ExpectQuery("SELECT").WillReturnRows(rowsOf(1))
			mock.ExpectCommit().WillReturnError(errNoQuorum)
			mock.ExpectClose()
		}, 1, errNoQuorum},
	} {
		runInBubble(t, name, func(t *testing.T) {
			ran, err := guarding(t, test.expect)
			if !errors.Is(err, test.want) || test.want != nil && !errors.Is(err, sqllock.ErrDatabase) || ran != test.ran ||
				errors.Is(err, sqllock.ErrInvalid) || errors.Is(err, sqllock.ErrLockLost) {
				t.Errorf("ran %d times: %v", ran, err)
			}
		})
	}
}

// A caller enters again inside of a transaction of its own that has the row pinned, which on SQLite keeps all
// others from writing, or that may have ended. (Of one that ExecuteLockedTx has begun that is known: see the contract.)
func TestGuard_EnteringAgainDoesNotWait(t *testing.T) {
	inBubble(t, func(t *testing.T) {
		db := migrated(t)
		registry := newRegistry(t, newRepository(t, db.DB, nil), nil)
		enter := func(ctx context.Context, most time.Duration) {
			t.Helper()
			began := time.Now()
			lease := check.Value(registry.TryLock(ctx, "k"))(t)
			check.Takes(t, "to enter again", began, 0, most)
			must(t, lease.Unlock(ctx))
		}
		lease := tryKey(t, registry, "k")
		tx := check.Value(db.DB.BeginTx(t.Context(), nil))(t)
		must(t, lease.Guard(t.Context(), tx))
		enter(lease.Context(), slack)
		must(t, tx.Commit())
		time.Sleep(sqllock.DefaultTTL / 2)
		end := lease.Deadline()
		enter(lease.Context(), 0)
		if !lease.Deadline().After(end) {
			t.Error("it was not renewed")
		}
		must(t, lease.Unlock(t.Context()))
	})
}
