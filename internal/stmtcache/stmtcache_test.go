package stmtcache

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/DATA-DOG/go-sqlmock"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

const (
	known   = "SELECT 1"
	unknown = "SELECT 1, 1"
)

var (
	errPrepare    = errors.New("prepare: no")
	readCommitted = &sql.TxOptions{Isolation: sql.LevelReadCommitted}
)

func begin(ctx context.Context, p *Cache) (*sqlx.Tx, error) {
	p.PrepareMissed(ctx)
	return p.db.BeginTxx(ctx, readCommitted)
}

// mocked returns a cache of one text, over a single mocked connection.
func mocked(t *testing.T) (*Cache, sqlmock.Sqlmock) {
	t.Helper()
	db, mock, err := sqlmock.New(sqlmock.QueryMatcherOption(sqlmock.QueryMatcherEqual))
	noError(t, err)
	db.SetMaxOpenConns(1)
	t.Cleanup(func() {
		mock.ExpectClose()
		noError(t, db.Close())
		noError(t, mock.ExpectationsWereMet())
	})
	return New(sqlx.NewDb(db, "sqlmock"), known, ""), mock
}

func noError(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func one() *sqlmock.Rows { return sqlmock.NewRows([]string{"one"}).AddRow(1) }

// ask runs a text that returns 1.
func ask(t *testing.T, db sqlx.QueryerContext, text string) {
	t.Helper()
	var n int
	noError(t, db.QueryRowxContext(t.Context(), text).Scan(&n))
	if n != 1 {
		t.Errorf("%s: %d", text, n)
	}
}

// drain reads all rows of a query.
func drain[R interface {
	Next() bool
	Close() error
	Err() error
}](rows R, err error) error {
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err has the error
	for rows.Next() {
	}
	return rows.Err()
}

func TestATextIsPreparedOnce(t *testing.T) {
	t.Parallel()
	p, mock := mocked(t)
	statement := mock.ExpectPrepare(known)
	for range 2 {
		statement.ExpectQuery().WillReturnRows(one())
		ask(t, p.On(nil), known)
	}
	statement.ExpectQuery().WillReturnRows(one())
	noError(t, drain(p.On(nil).QueryContext(t.Context(), known)))
	statement.ExpectQuery().WillReturnRows(one())
	noError(t, drain(p.On(nil).QueryxContext(t.Context(), known)))
	statement.ExpectExec().WillReturnResult(sqlmock.NewResult(0, 3))
	result, err := p.On(nil).ExecContext(t.Context(), known)
	noError(t, err)
	if n, err := result.RowsAffected(); n != 3 || err != nil {
		t.Error(n, err)
	}
}

// A text that cannot be prepared is sent unprepared, until it can be prepared.
func TestATextThatCannotBePreparedYet(t *testing.T) {
	t.Parallel()
	p, mock := mocked(t)
	for range 2 {
		mock.ExpectPrepare(known).WillReturnError(errPrepare)
		mock.ExpectQuery(known).WillReturnRows(one())
		ask(t, p.On(nil), known)
	}
	mock.ExpectPrepare(known).WillReturnError(errPrepare)
	failure := errors.New("no such table")
	mock.ExpectExec(known).WillReturnError(failure)
	if _, err := p.On(nil).ExecContext(t.Context(), known); !errors.Is(err, failure) {
		t.Error(err)
	}
	statement := mock.ExpectPrepare(known)
	for range 2 {
		statement.ExpectQuery().WillReturnRows(one())
		ask(t, p.On(nil), known)
	}
}

// Texts that differ in each call must not fill the server's memory.
func TestOtherTextsAreNotPrepared(t *testing.T) {
	t.Parallel()
	p, mock := mocked(t)
	mock.ExpectQuery(unknown).WillReturnRows(one())
	noError(t, drain(p.On(nil).QueryContext(t.Context(), unknown)))
	mock.ExpectQuery(unknown).WillReturnRows(one())
	noError(t, drain(p.On(nil).QueryxContext(t.Context(), unknown)))
	mock.ExpectQuery(unknown).WillReturnError(errPrepare)
	if err := p.On(nil).QueryRowxContext(t.Context(), unknown).Err(); !errors.Is(err, errPrepare) {
		t.Error(err)
	}
	mock.ExpectExec(unknown).WillReturnResult(sqlmock.NewResult(0, 1))
	_, err := p.On(nil).ExecContext(t.Context(), unknown)
	noError(t, err)
}

// A transaction uses no second connection; this pool has none. A text that it has missed is
// prepared before the next transaction.
func TestInATransaction(t *testing.T) {
	t.Parallel()
	p, mock := mocked(t)
	mock.ExpectBegin()
	tx, err := begin(t.Context(), p)
	noError(t, err)
	mock.ExpectQuery(known).WillReturnRows(one())
	ask(t, p.On(tx), known)
	mock.ExpectCommit()
	noError(t, tx.Commit())

	statement := mock.ExpectPrepare(known)
	for range 2 {
		mock.ExpectBegin()
		tx, err = begin(t.Context(), p)
		noError(t, err)
		statement.ExpectQuery().WillReturnRows(one())
		ask(t, p.On(tx), known)
		mock.ExpectQuery(unknown).WillReturnRows(one())
		noError(t, drain(p.On(tx).QueryxContext(t.Context(), unknown)))
		mock.ExpectCommit()
		noError(t, tx.Commit())
	}
	statement.ExpectQuery().WillReturnRows(one())
	ask(t, p.On(nil), known) // the end of the transaction has not closed it
}

// While another caller prepares a text, possibly without an end, it is sent unprepared.
func TestNoCallerWaitsForAnotherToPrepare(t *testing.T) {
	t.Parallel()
	p, mock := mocked(t)
	p.texts[known].preparing = true // by a call that does not return
	mock.ExpectQuery(known).WillReturnRows(one())
	ask(t, p.On(nil), known)
	noError(t, p.Close())
}

func TestATextThatCannotBePreparedIsSentByTransactions(t *testing.T) {
	t.Parallel()
	p, mock := mocked(t)
	for i := range 3 {
		if i > 0 {
			mock.ExpectPrepare(known).WillReturnError(errPrepare)
		}
		mock.ExpectBegin()
		tx, err := begin(t.Context(), p)
		noError(t, err)
		mock.ExpectExec(known).WillReturnResult(sqlmock.NewResult(0, 1))
		_, err = p.On(tx).ExecContext(t.Context(), known)
		noError(t, err)
		mock.ExpectRollback()
		noError(t, tx.Rollback())
	}
}

func TestTextsArePreparedAgainAfterClose(t *testing.T) {
	t.Parallel()
	p, mock := mocked(t)
	noError(t, p.Close())
	for range 2 {
		statement := mock.ExpectPrepare(known).WillBeClosed()
		for range 2 {
			statement.ExpectQuery().WillReturnRows(one())
			ask(t, p.On(nil), known)
		}
		noError(t, p.Close())
		noError(t, p.Close())
	}
}

// Close neither waits for a statement in use nor closes it.
func TestCloseDuringUse(t *testing.T) {
	t.Parallel()
	p, mock := mocked(t)
	statement := mock.ExpectPrepare(known).WillBeClosed()
	statement.ExpectQuery().WillReturnRows(one())
	k := p.texts[known].prepare(t.Context(), p.db)
	noError(t, p.Close())
	ask(t, alone{k.prepared}, known)
	k.done(nil)
	statement = mock.ExpectPrepare(known)
	statement.ExpectQuery().WillReturnRows(one())
	ask(t, p.On(nil), known)
}

// alone runs a prepared statement and ignores the text.
type alone struct{ stmt *sqlx.Stmt }

func (a alone) QueryContext(ctx context.Context, _ string, args ...any) (*sql.Rows, error) {
	return a.stmt.QueryContext(ctx, args...)
}

func (a alone) QueryxContext(ctx context.Context, _ string, args ...any) (*sqlx.Rows, error) {
	return a.stmt.QueryxContext(ctx, args...)
}

func (a alone) QueryRowxContext(ctx context.Context, _ string, args ...any) *sqlx.Row {
	return a.stmt.QueryRowxContext(ctx, args...)
}

// The texts for real databases. The keys of put say whether placeholders are numbered.
var (
	put   = map[bool]string{false: "INSERT INTO t (n) VALUES (?)", true: "INSERT INTO t (n) VALUES ($1)"}
	count = "SELECT COUNT(*) FROM t"
)

func TestConcurrentUse(t *testing.T) {
	t.Parallel()
	db := dbtest.SQLite(t).DB
	db.SetMaxOpenConns(4)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE t (n INTEGER)")
	noError(t, err)
	p := New(db, put[false], count)
	const workers = 16
	each := 40
	if testing.Short() {
		each = 10
	}
	var all sync.WaitGroup
	for i := range workers {
		all.Go(func() {
			for j := range each {
				if err := putOne(t.Context(), p, j%4 == 0); err != nil {
					t.Error(err)
				}
				if i == 0 && j%10 == 0 {
					if err := p.Close(); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	all.Wait()
	var n int
	noError(t, p.On(nil).QueryRowxContext(t.Context(), count).Scan(&n))
	if n != workers*each {
		t.Errorf("%d rows", n)
	}
	noError(t, p.Close())
	for text, of := range p.texts {
		if of.kept != nil || of.preparing {
			t.Errorf("%s is kept", text)
		}
	}
}

// putOne inserts a row and reads, in a transaction or without one.
func putOne(ctx context.Context, p *Cache, inTransaction bool) error {
	var n int
	if !inTransaction {
		_, err := p.On(nil).ExecContext(ctx, put[false], 1)
		return errors.Join(err, p.On(nil).QueryRowxContext(ctx, count).Scan(&n))
	}
	p.PrepareMissed(ctx)
	tx, err := p.db.BeginTxx(ctx, nil)
	if err != nil {
		return err
	}
	_, err = p.On(tx).ExecContext(ctx, put[false], 1) // first, so that no snapshot is too old
	return errors.Join(err, p.On(tx).QueryRowxContext(ctx, count).Scan(&n), tx.Commit())
}

// onServers runs a test on all database servers, with a table t and a pool of one
// connection.
func onServers(t *testing.T, test func(t *testing.T, db *dbtest.DB, p *Cache, put string)) {
	t.Helper()
	dbtest.Each(t, func(t *testing.T, db *dbtest.DB) {
		if db.Name == "sqlite" {
			t.Skip("has no server")
		}
		db.DB.SetMaxOpenConns(1)
		_, err := db.DB.ExecContext(t.Context(), "CREATE TABLE t (n INTEGER)")
		noError(t, err)
		put := put[db.Dialect.Numbered]
		p := New(db.DB, put, count)
		for n := range 10 { // PostgreSQL keeps a plan from the sixth execution on
			_, err := p.On(nil).ExecContext(t.Context(), put, n)
			noError(t, err)
			noError(t, p.On(nil).QueryRowxContext(t.Context(), count).Scan(new(int)))
		}
		test(t, db, p, put)
		for range 2 {
			_, err := p.On(nil).ExecContext(t.Context(), put, 1)
			noError(t, err)
		}
		for text, of := range p.texts {
			if of.kept == nil {
				t.Errorf("%s is not prepared", text)
			}
		}
		noError(t, p.Close())
	})
}

// A connection with prepared statements breaks: the next call uses another one.
func TestABrokenConnectionIsReplaced(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *dbtest.DB, p *Cache, _ string) {
		session, end, gone := "SELECT CONNECTION_ID()", "KILL %d", "SELECT COUNT(*) = 0 FROM information_schema.processlist WHERE id = %d"
		if db.Name == "postgres" {
			session, end, gone = "SELECT pg_backend_pid()", "SELECT pg_terminate_backend(%d)", "SELECT COUNT(*) = 0 FROM pg_stat_activity WHERE pid = %d"
		}
		var id int64
		noError(t, db.DB.GetContext(t.Context(), &id, session))
		other := db.Open(t)
		_, err := other.ExecContext(t.Context(), fmt.Sprintf(end, id))
		noError(t, err)
		for over := false; !over; time.Sleep(time.Millisecond) {
			noError(t, other.GetContext(t.Context(), &over, fmt.Sprintf(gone, id)))
		}
		var n int
		noError(t, p.On(nil).QueryRowxContext(t.Context(), count).Scan(&n))
		if n != 10 {
			t.Errorf("%d rows", n)
		}
	})
}

// The table is replaced by one with other columns while its statements are cached.
func TestAReplacedTable(t *testing.T) {
	t.Parallel()
	onServers(t, func(t *testing.T, db *dbtest.DB, p *Cache, put string) {
		for _, text := range []string{"DROP TABLE t", "CREATE TABLE t (m INTEGER, n INTEGER)", "ALTER TABLE t ADD COLUMN o INTEGER"} {
			_, err := db.DB.ExecContext(t.Context(), text)
			noError(t, err)
			if text == "DROP TABLE t" {
				if _, err := p.On(nil).ExecContext(t.Context(), put, 1); db.Dialect.Classify(err) != dialect.Schema {
					t.Errorf("without a table: %v", err)
				}
				continue
			}
			var n int
			_, err = p.On(nil).ExecContext(t.Context(), put, 1)
			noError(t, err)
			noError(t, p.On(nil).QueryRowxContext(t.Context(), count).Scan(&n))
			if n == 0 || n > 2 {
				t.Errorf("%d rows after %s", n, text)
			}
		}
	})
}

// PostgreSQL drops prepared statements if the application asks for it, and refuses those
// whose result type has changed. Only one call fails.
func TestStaleStatementsArePreparedAgain(t *testing.T) {
	t.Parallel()
	db := dbtest.Postgres(t).DB
	db.SetMaxOpenConns(1)
	_, err := db.ExecContext(t.Context(), "CREATE TABLE t AS SELECT 1 AS n")
	noError(t, err)
	const text = "SELECT n FROM t"
	p := New(db, text)
	for _, change := range []string{"DEALLOCATE ALL", "DISCARD ALL", "ALTER TABLE t ALTER COLUMN n TYPE BIGINT"} {
		for range 10 {
			ask(t, p.On(nil), text)
		}
		_, err := db.ExecContext(t.Context(), change)
		noError(t, err)
		if err := p.On(nil).QueryRowxContext(t.Context(), text).Scan(new(int)); !isStale(err) {
			t.Errorf("after %s: %v", change, err)
		}
		ask(t, p.On(nil), text)
	}
	noError(t, p.Close())
}
