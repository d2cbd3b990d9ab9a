package transaction_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/go-sql-driver/mysql"
	"github.com/lib/pq"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/sqltext"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/flaky"
	"github.com/sqllock/sqllock/internal/test/testmain"
	"github.com/sqllock/sqllock/internal/test/virtual"
	"github.com/sqllock/sqllock/internal/transaction"
)

func TestMain(m *testing.M) { testmain.Run(m) }

var must = check.Must

var (
	errNoQuorum = &mysql.MySQLError{Number: 1047, Message: "WSREP has not yet prepared node for application use"}
	errStuck    = &mysql.MySQLError{Number: 1568, Message: "Transaction characteristics can't be changed while a transaction is in progress"}
	errGone     = errors.New("connection reset by peer")
)

// mocked returns a mocked pool, and a function that returns how many connections it has.
func mocked(t *testing.T) (*sql.DB, sqlmock.Sqlmock, func() int) {
	t.Helper()
	db, mock, err := sqlmock.New()
	must(t, err)
	spare := check.Value(db.Conn(t.Context()))(t) // the mock ends with its last connection
	t.Cleanup(func() {
		must(t, mock.ExpectationsWereMet())
		must(t, spare.Close())
		_ = db.Close() // the mock did not expect it
	})
	return db, mock, func() int {
		synctest.Wait() // what is closed in the background is closed
		return db.Stats().OpenConnections - 1
	}
}

func begin(ctx context.Context, db *sql.DB, d sqltext.Dialect) (*transaction.Tx, error) {
	return transaction.Pool{DB: db, Dialect: &d}.Begin(ctx, nil)
}

// The connection stays in the pool if its transaction is over, and only then.
func TestTheEndOfATransaction(t *testing.T) {
	t.Parallel()
	my, pg, lite := sqltext.MySQL(), sqltext.Postgres(), sqltext.SQLite()
	for name, c := range map[string]struct {
		dialect sqltext.Dialect
		err     error
		kept    bool
	}{
		"done":                                {my, nil, true},
		"a node without a quorum":             {my, errNoQuorum, false},
		"a lost race":                         {my, &mysql.MySQLError{Number: 1213}, true},
		"a failed certification":              {my, &mysql.MySQLError{Number: 3101}, true},
		"a broken connection to MySQL":        {my, errGone, false},
		"a serialization failure":             {pg, &pq.Error{Code: "40001"}, true},
		"a deferred constraint":               {pg, &pq.Error{Code: "23505"}, true},
		"a broken connection to PostgreSQL":   {pg, errGone, false},
		"SQLite, maybe a database in memory":  {lite, errGone, true},
		"a transaction that was ended before": {my, sql.ErrTxDone, false},
	} {
		for end, expect := range map[string]func(sqlmock.Sqlmock){
			"Commit":   func(mock sqlmock.Sqlmock) { mock.ExpectCommit().WillReturnError(c.err) },
			"Rollback": func(mock sqlmock.Sqlmock) { mock.ExpectRollback().WillReturnError(c.err) },
		} {
			t.Run(name+"/"+end, func(t *testing.T) {
				t.Parallel()
				synctest.Test(t, func(t *testing.T) {
					db, mock, connections := mocked(t)
					mock.ExpectBegin()
					tx, err := begin(t.Context(), db, c.dialect)
					must(t, err)
					expect(mock)
					run := tx.Commit
					if end == "Rollback" {
						run = tx.Rollback
					}
					check.Is(t, run(), c.err)
					want := 0
					if c.kept {
						want = 1
					}
					check.Equal(t, "connections in the pool", connections(), want)
				})
			})
		}
	}
}

// A rollback by the end of the context may have failed.
func TestTheEndOfTheContext(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, mock, connections := mocked(t)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		mock.ExpectBegin()
		mock.ExpectRollback().WillReturnError(errNoQuorum)
		tx := check.Value(begin(ctx, db, sqltext.MySQL()))(t)
		cancel()
		if err := tx.Commit(); err == nil {
			t.Error("committed")
		}
		_ = tx.Rollback() // as a deferred one does
		check.Equal(t, "connections in the pool", connections(), 0)
	})
}

// The rollback that database/sql sends at the end of the context may never be answered. It is not waited for.
func TestTheEndOfTheContextIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	file := virtual.Migrated(t, dialect.Spring7)
	connector := flaky.New(file.DB.Driver(), file.DSN)
	db := sql.OpenDB(connector)
	defer func() { must(t, db.Close()) }()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	tx := check.Value(begin(ctx, db, sqltext.MySQL()))(t)
	sent, answer := make(chan struct{}), make(chan struct{})
	connector.Follow(func(_ context.Context, m flaky.Moment) error {
		if m.Op == flaky.Rollback && !m.Done {
			close(sent)
			<-answer
		}
		return nil
	})
	cancel()
	<-sent
	check.Is(t, tx.Rollback(), sql.ErrTxDone)
	close(answer)
}

// Begin gives up when the pool has no connection left that could be stuck.
func TestBeginIfAllFails(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		db, mock, connections := mocked(t)
		for range 2 { // there is one connection, the spare one
			mock.ExpectBegin().WillReturnError(errStuck)
		}
		check.Is(t, check.ErrorOf(begin(t.Context(), db, sqltext.MySQL())), errStuck)
		mock.ExpectBegin().WillReturnError(errNoQuorum)
		check.Is(t, check.ErrorOf(begin(t.Context(), db, sqltext.MySQL())), errNoQuorum)
		check.Equal(t, "connections in the pool", connections(), 0)
	})
}

// What comes second does not wait for an answer to the first, which may never come.
func TestWhatEndsATransactionSecondDoesNotWait(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		file := virtual.Migrated(t, dialect.Spring7)
		connector := flaky.New(file.DB.Driver(), file.DSN)
		db := sql.OpenDB(connector)
		defer func() { must(t, db.Close()) }()
		tx := check.Value(begin(t.Context(), db, sqltext.SQLite()))(t)
		const answer = time.Minute
		connector.Follow(func(context.Context, flaky.Moment) error {
			time.Sleep(answer)
			return nil
		})
		began, committed := time.Now(), make(chan error, 1)
		go func() { committed <- tx.Commit() }()
		synctest.Wait()
		if err := tx.Rollback(); !errors.Is(err, sql.ErrTxDone) || time.Since(began) >= answer {
			t.Errorf("%v after %v", err, time.Since(began))
		}
		must(t, <-committed)
	})
}

// send sends a message with a transaction in it.
func send(ctx context.Context, db *sql.DB, d sqltext.Dialect) error {
	try := transaction.Pool{DB: db, Dialect: &d}.TryWhole()
	for try.Next(ctx) {
		_, try.Err = try.Conn.ExecContext(ctx, "message")
	}
	return try.Err
}

// The connection stays in the pool if no transaction is open on it, and only then.
func TestTheEndOfAMessage(t *testing.T) {
	t.Parallel()
	my, pg := sqltext.MySQL(), sqltext.Postgres()
	pinned := &mysql.MySQLError{Number: 1205}
	for name, c := range map[string]struct {
		dialect   sqltext.Dialect
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
				must(t, send(t.Context(), db, sqltext.MySQL()))
				mock.ExpectBegin().WillReturnError(failure)
				mock.ExpectBegin()
				mock.ExpectCommit()
				tx := check.Value(begin(t.Context(), db, sqltext.MySQL()))(t)
				must(t, tx.Commit())
				check.Equal(t, "connections in the pool", connections(), 1)
			})
		})
	}
}

// A closing connector makes connections that the server closes before they are one, as often as it says.
type closing struct {
	driver.Connector

	left int
	err  error
}

func (c *closing) Connect(ctx context.Context) (driver.Conn, error) {
	if c.left > 0 {
		c.left--
		return nil, c.err
	}
	return c.Connector.Connect(ctx)
}

// A new connection that is closed while it is made is asked for once more. Nothing was sent, so nothing may have been
// applied.
func TestANewConnectionThatIsClosed(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		err    error
		closed int
		wanted error
	}{
		{mysql.ErrBusyBuffer, 1, nil},
		{mysql.ErrBusyBuffer, 2, mysql.ErrBusyBuffer},
		{errors.New("bad connection"), 1, nil},
		{errGone, 1, errGone},
	} {
		file, d := virtual.Migrated(t, dialect.Spring7), sqltext.SQLite()
		db := sql.OpenDB(&closing{flaky.New(file.DB.Driver(), file.DSN), test.closed, test.err})
		try := transaction.Pool{DB: db, Dialect: &d}.Try()
		for try.Next(t.Context()) {
			try.Err = check.ErrorOf(try.Conn.ExecContext(t.Context(), "SELECT 1"))
		}
		check.Is(t, try.Err, test.wanted)
		check.Equal(t, "sent before", try.Resent, false)
		must(t, db.Close())
	}
}

// A transaction whose connection is closed is run once more. If that was before COMMIT, it was not applied.
func TestRunAgain(t *testing.T) {
	t.Parallel()
	run := func(t *testing.T, db *sql.DB) (resent bool, err error) {
		t.Helper()
		d := sqltext.MySQL()
		return transaction.Pool{DB: db, Dialect: &d}.Run(t.Context(), nil, func(tx *transaction.Tx) error {
			return check.ErrorOf(tx.ExecContext(t.Context(), "statement"))
		})
	}
	synctest.Test(t, func(t *testing.T) {
		db, mock, connections := mocked(t)
		for _, committing := range []bool{false, true} {
			mock.ExpectBegin()
			if first := mock.ExpectExec("statement"); committing {
				first.WillReturnResult(driver.RowsAffected(1))
				mock.ExpectCommit().WillReturnError(mysql.ErrInvalidConn)
			} else {
				first.WillReturnError(mysql.ErrInvalidConn)
				mock.ExpectRollback().WillReturnError(mysql.ErrInvalidConn)
			}
			mock.ExpectBegin()
			mock.ExpectExec("statement").WillReturnResult(driver.RowsAffected(1))
			mock.ExpectCommit()
			check.Equal(t, "may have been applied before", check.Value(run(t, db))(t), committing)
		}
		mock.ExpectBegin()
		mock.ExpectExec("statement").WillReturnError(errNoQuorum)
		mock.ExpectRollback()
		check.Is(t, check.ErrorOf(run(t, db)), errNoQuorum)
		check.Equal(t, "connections in the pool", connections(), 1)
	})
}

// A connection whose server has become read-only leaves the pool. One to an embedded database stays: that may be in memory.
func TestAServerThatBecomesReadOnly(t *testing.T) {
	t.Parallel()
	refused := &mysql.MySQLError{Number: 1290}
	for _, embedded := range []bool{false, true} {
		d, left := sqltext.MySQL(), 0
		if d.Embedded = embedded; embedded {
			left = 1
		}
		for what, do := range map[string]func(*testing.T, transaction.Pool, sqlmock.Sqlmock) error{
			"a statement": func(t *testing.T, p transaction.Pool, mock sqlmock.Sqlmock) error {
				mock.ExpectExec("statement").WillReturnError(refused)
				return check.ErrorOf(transaction.On(t.Context(), p, func(conn *sql.Conn) (sql.Result, error) { return conn.ExecContext(t.Context(), "statement") }))
			},
			"a transaction": func(t *testing.T, p transaction.Pool, mock sqlmock.Sqlmock) error {
				mock.ExpectBegin()
				mock.ExpectExec("statement").WillReturnError(refused)
				mock.ExpectRollback()
				return check.ErrorOf(p.Run(t.Context(), nil, func(tx *transaction.Tx) error {
					return check.ErrorOf(tx.ExecContext(t.Context(), "statement"))
				}))
			},
		} {
			synctest.Test(t, func(t *testing.T) {
				db, mock, connections := mocked(t)
				check.Is(t, do(t, transaction.Pool{DB: db, Dialect: &d}, mock), refused)
				check.Equal(t, "connections in the pool after "+what, connections(), left)
			})
		}
	}
}

// A transaction that the caller has made read-only is refused on any server. The connection stays in the pool.
func TestAReadOnlyTransactionKeepsItsConnection(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		dialect sqltext.Dialect
		refused error
	}{
		"PostgreSQL": {sqltext.Postgres(), &pq.Error{Code: "25006"}},
		"MySQL":      {sqltext.MySQL(), &mysql.MySQLError{Number: 1792}},
	} {
		for _, readOnly := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				db, mock, connections := mocked(t)
				mock.ExpectBegin()
				mock.ExpectExec("statement").WillReturnError(c.refused)
				mock.ExpectRollback()
				_, err := transaction.Pool{DB: db, Dialect: &c.dialect}.Run(t.Context(), &sql.TxOptions{ReadOnly: readOnly}, func(tx *transaction.Tx) error {
					return check.ErrorOf(tx.ExecContext(t.Context(), "statement"))
				})
				check.Is(t, err, c.refused)
				check.Equal(t, what+": the connection is in the pool", connections() == 1, readOnly)
			})
		}
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
		d, began := sqltext.Postgres(), time.Now()
		check.Is(t, send(t.Context(), db, d), driver.ErrBadConn)
		if took := time.Since(began); took < time.Second {
			t.Errorf("given up after %v", took)
		}
	})
}
