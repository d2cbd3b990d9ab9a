package transaction_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/transaction"
)

// send sends a message with a transaction in it.
func send(ctx context.Context, db *sql.DB, d dialect.Dialect) error {
	try := transaction.Pool{DB: db, Dialect: &d}.TryWhole()
	for try.Next(ctx) {
		_, try.Err = try.Conn.ExecContext(ctx, "message")
	}
	return try.Err
}

// The connection stays in the pool if no transaction is open on it, and only then.
func TestTheEndOfAMessage(t *testing.T) {
	t.Parallel()
	my, pg := dialect.MySQL(), dialect.Postgres()
	pinned := &mysql.MySQLError{Number: 1205}
	for name, c := range map[string]struct {
		dialect   dialect.Dialect
		err       error
		rollsBack bool  // a ROLLBACK is sent
		rollback  error // its answer
		kept      bool
	}{
		"done":                            {my, nil, false, nil, true},
		"a deadlock":                      {my, &mysql.MySQLError{Number: 1213}, false, nil, true},
		"a pinned row":                    {my, pinned, true, nil, true},
		"a pinned row, then no quorum":    {my, pinned, true, errNoQuorum, false},
		"no quorum":                       {my, errNoQuorum, false, nil, false},
		"a broken connection":             {my, errGone, false, nil, false},
		"a serialization failure":         {pg, &pq.Error{Code: "40001"}, false, nil, true},
		"a statement that is not allowed": {pg, &pq.Error{Code: "42501"}, false, nil, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, mock, connections := mocked(t)
				answer := mock.ExpectExec("message")
				if c.err == nil {
					answer.WillReturnResult(driver.RowsAffected(1))
				} else {
					answer.WillReturnError(c.err)
				}
				if c.rollsBack {
					if end := mock.ExpectExec("ROLLBACK"); c.rollback == nil {
						end.WillReturnResult(driver.RowsAffected(0))
					} else {
						end.WillReturnError(c.rollback)
					}
				}
				check.Is(t, send(t.Context(), db, c.dialect), c.err)
				want := 0
				if c.kept {
					want = 1
				}
				check.Equal(t, "connections in the pool", connections(), want)
			})
		})
	}
}

// A connection that is stuck in another transaction, or broken, is passed over.
func TestUnusableConnectionsArePassedOver(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"stuck": errStuck, "broken": driver.ErrBadConn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, mock, connections := mocked(t)
				mock.ExpectExec("message").WillReturnError(failure)
				mock.ExpectExec("message").WillReturnResult(driver.RowsAffected(1))
				must(t, send(t.Context(), db, dialect.MySQL()))
				mock.ExpectBegin().WillReturnError(failure)
				mock.ExpectBegin()
				mock.ExpectCommit()
				tx := check.Value(begin(t.Context(), db, dialect.MySQL()))(t)
				must(t, tx.Commit())
				check.Equal(t, "connections in the pool", connections(), 1)
			})
		})
	}
}

// A server that closes each new connection is not asked for a hundred at once.
func TestTryPausesWhereEachConnectionIsClosed(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, mock, _ := mocked(t)
		const passedOver = 101
		for range passedOver {
			mock.ExpectExec("message").WillReturnError(driver.ErrBadConn)
		}
		d, began := dialect.Postgres(), time.Now()
		check.Is(t, send(t.Context(), db, d), driver.ErrBadConn)
		if took := time.Since(began); took < time.Second {
			t.Errorf("given up after %v", took)
		}
	})
}
