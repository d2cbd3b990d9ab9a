package session_test

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"path/filepath"
	"testing"

	"modernc.org/sqlite"

	"github.com/sqllock/sqllock/internal/session"
	"github.com/sqllock/sqllock/internal/test/check"
)

// A counter counts the statements that the connections of a connector prepare, and those that are closed.
type counter struct {
	driver.Connector

	prepared, closed int
}

func (c *counter) Connect(ctx context.Context) (driver.Conn, error) {
	inner, err := c.Connector.Connect(ctx)
	if err != nil {
		return nil, err
	}
	return &countedConn{inner.(fileSession), c}, nil
}

type fileSession interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
	driver.ExecerContext
	driver.Pinger
	driver.QueryerContext
	driver.SessionResetter
	driver.Validator
}

type countedConn struct {
	fileSession

	counter *counter
}

func (c *countedConn) PrepareContext(ctx context.Context, query string) (driver.Stmt, error) {
	s, err := c.fileSession.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	c.counter.prepared++
	return &countedStatement{s.(statement), c.counter}, nil
}

type statement interface {
	driver.Stmt
	driver.StmtExecContext
	driver.StmtQueryContext
}

type countedStatement struct {
	statement

	counter *counter
}

func (s *countedStatement) Close() error {
	s.counter.closed++
	return s.statement.Close()
}

// What is sent often to a file is prepared once, in a transaction and outside, goes on when the table was made anew, and is closed
// with the connection.
func TestPreparing(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	open := func(wrap func(driver.Connector) driver.Connector) (*sql.DB, *counter) {
		c := &counter{Connector: check.Value(sqlite.NewConnector("file:" + filepath.Join(t.TempDir(), "locks.db") + "?_pragma=journal_mode(WAL)"))(t)}
		db := sql.OpenDB(wrap(c))
		db.SetMaxOpenConns(1)
		return db, c
	}
	db, counted := open(session.Preparing)
	exec := func(text string, args ...any) {
		t.Helper()
		check.Must(t, check.ErrorOf(db.ExecContext(ctx, text, args...)))
	}
	read := func(want string) {
		t.Helper()
		var got string
		check.Must(t, db.QueryRowContext(ctx, "SELECT v FROM t WHERE k = ?", 1).Scan(&got))
		check.Equal(t, "v", got, want)
	}
	exec("CREATE TABLE t (k INT PRIMARY KEY, v TEXT)")
	for range 3 {
		tx := check.Value(db.BeginTx(ctx, nil))(t)
		check.Must(t, check.ErrorOf(tx.ExecContext(ctx, "INSERT INTO t VALUES (?, ?) ON CONFLICT DO NOTHING", 1, "one")))
		check.Must(t, tx.Commit())
		read("one")
	}
	check.Equal(t, "prepared", counted.prepared, 2)
	exec("DROP TABLE t")
	if err := db.QueryRowContext(ctx, "SELECT v FROM t WHERE k = ?", 1).Scan(new(string)); err == nil {
		t.Error("read a table that is gone")
	}
	exec("CREATE TABLE t (v TEXT, k INT PRIMARY KEY)")
	exec("INSERT INTO t VALUES (?, ?)", "two", 1)
	read("two")
	check.Equal(t, "prepared", counted.prepared, 2)
	check.Must(t, db.Close())
	check.Equal(t, "closed", counted.closed, 2)
}
