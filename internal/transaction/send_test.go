package transaction_test

import (
	"context"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/transaction"
)

// exec sends a message.
func exec(ctx context.Context) func(*sqlx.Conn) error {
	return func(conn *sqlx.Conn) error {
		_, err := conn.ExecContext(ctx, "message")
		return err
	}
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
				if _, err := transaction.Send(t.Context(), db, c.dialect, exec(t.Context())); !errors.Is(err, c.err) {
					t.Errorf("error %v", err)
				}
				want := 0
				if c.kept {
					want = 1
				}
				if got := connections(); got != want {
					t.Errorf("%d connections in the pool, want %d", got, want)
				}
			})
		})
	}
}

// A connection that is stuck in another transaction, or broken, is passed over.
func TestSendOnUnusableConnections(t *testing.T) {
	t.Parallel()
	for name, failure := range map[string]error{"stuck": errStuck, "broken": driver.ErrBadConn} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				db, mock, connections := mocked(t)
				mock.ExpectExec("message").WillReturnError(failure)
				mock.ExpectExec("message").WillReturnResult(driver.RowsAffected(1))
				_, err := transaction.Send(t.Context(), db, dialect.MySQL(), exec(t.Context()))
				must(t, err)
				if got := connections(); got != 1 {
					t.Errorf("%d connections in the pool", got)
				}
			})
		})
	}
}
