package simulation

import (
	"context"
	"database/sql/driver"
	"errors"
	"io"

	"github.com/sqllock/sqllock/internal/test/virtualsqlite"
)

// A session is what the database keeps of a connection: one of SQLite's, with the statements
// that it has parsed. Parsing takes most of the time of a small statement. All sessions of
// a world are used by the goroutine of its database: see [World.serve].
type session struct {
	conn   sqliteConn
	parsed map[string]driver.Stmt
}

type sqliteConn interface {
	driver.Conn
	driver.ConnBeginTx
	driver.ConnPrepareContext
}

func newSession(path string, deferred bool) (*session, error) {
	begin := "immediate"
	if deferred {
		begin = "deferred"
	}
	const pragmas = "&_pragma=synchronous(OFF)&_pragma=journal_mode(WAL)"
	c, err := virtualsqlite.OpenImpatient("file:" + path + "?_txlock=" + begin + pragmas)
	if err != nil {
		return nil, err
	}
	return &session{c.(sqliteConn), make(map[string]driver.Stmt)}, nil
}

func (s *session) begin(opts driver.TxOptions) (driver.Tx, error) {
	return s.conn.BeginTx(context.Background(), opts)
}

// parse returns the statement of a text.
func (s *session) parse(query string) (driver.Stmt, error) {
	if parsed, ok := s.parsed[query]; ok {
		return parsed, nil
	}
	parsed, err := s.conn.PrepareContext(context.Background(), query)
	if err != nil {
		return nil, err
	}
	s.parsed[query] = parsed
	return parsed, nil
}

func (s *session) exec(query string, args []driver.NamedValue) (driver.Result, error) {
	parsed, err := s.parse(query)
	if err != nil {
		return nil, err
	}
	return parsed.(driver.StmtExecContext).ExecContext(context.Background(), args)
}

// query returns all rows at once, so that a statement has ended, and is committed if it is its
// own transaction, in the instant in which it is applied.
func (s *session) query(query string, args []driver.NamedValue) (*buffered, error) {
	parsed, err := s.parse(query)
	if err != nil {
		return nil, err
	}
	rows, err := parsed.(driver.StmtQueryContext).QueryContext(context.Background(), args)
	if err != nil {
		return nil, err
	}
	read := &buffered{columns: rows.Columns()}
	for err == nil {
		row := make([]driver.Value, len(read.columns))
		if err = rows.Next(row); err == nil {
			read.rows = append(read.rows, row)
		}
	}
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return read, errors.Join(err, rows.Close())
}

func (s *session) close() error {
	var err error
	for _, parsed := range s.parsed {
		err = errors.Join(err, parsed.Close())
	}
	return errors.Join(err, s.conn.Close())
}

// buffered are rows that have been read.
type buffered struct {
	columns []string
	rows    [][]driver.Value
}

func (b *buffered) Columns() []string { return b.columns }
func (b *buffered) Close() error      { return nil }

func (b *buffered) Next(to []driver.Value) error {
	if len(b.rows) == 0 {
		return io.EOF
	}
	copy(to, b.rows[0])
	b.rows = b.rows[1:]
	return nil
}
