package virtualsqlite

import (
	"context"
	"database/sql/driver"
	"errors"
	"strings"
)

// keptStatements is how many prepared statements a connection keeps.
const keptStatements = 100

// statements are the prepared statements of a connection that are not in use, by their texts.
// With the race detector, SQLite takes longer to parse a statement than to run it.
type statements map[string]sqliteStmt

// take returns a prepared statement, which is the caller's until it puts it back.
func (s statements) take(ctx context.Context, c sqliteConn, query string) (sqliteStmt, error) {
	if kept, ok := s[query]; ok {
		delete(s, query)
		return kept, nil
	}
	prepared, err := c.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	return prepared.(sqliteStmt), nil
}

// put puts a statement back that has been run without an error.
func (s statements) put(query string, used sqliteStmt) error {
	if _, ok := s[query]; ok || len(s) == keptStatements || !isReusable(query) {
		return used.Close()
	}
	s[query] = used
	return nil
}

func (s statements) close() error {
	var errs []error
	for _, kept := range s {
		errs = append(errs, kept.Close())
	}
	clear(s)
	return errors.Join(errs...)
}

// isReusable reports whether a statement does the same each time it runs. A PRAGMA may do its
// work while it is prepared.
func isReusable(query string) bool {
	verb, _, _ := strings.Cut(strings.TrimSpace(query), " ")
	switch strings.ToUpper(verb) {
	case "SELECT", "INSERT", "UPDATE", "DELETE", "WITH":
		return true
	default:
		return false
	}
}

func (s statements) exec(ctx context.Context, c sqliteConn, query string, args []driver.NamedValue) (driver.Result, error) {
	prepared, err := s.take(ctx, c, query)
	if err != nil {
		return nil, err
	}
	result, err := prepared.ExecContext(ctx, args)
	if err != nil {
		return nil, s.failed(err, query, prepared)
	}
	return result, s.put(query, prepared)
}

func (s statements) query(ctx context.Context, c sqliteConn, query string, args []driver.NamedValue) (driver.Rows, error) {
	prepared, err := s.take(ctx, c, query)
	if err != nil {
		return nil, err
	}
	result, err := prepared.QueryContext(ctx, args)
	if err != nil {
		return nil, s.failed(err, query, prepared)
	}
	return &rows{result.(sqliteRows), func() error { return s.put(query, prepared) }}, nil
}

// failed closes a statement after an error. Its close returns the same error once more. While another
// connection writes, the statement is about to be tried again a hundred times, so it is kept.
func (s statements) failed(err error, query string, prepared sqliteStmt) error {
	if isBusy(err) {
		return errors.Join(err, s.put(query, prepared))
	}
	_ = prepared.Close()
	return err
}

// sqliteRows is what the rows of modernc.org/sqlite implement.
type sqliteRows interface {
	driver.Rows
	driver.RowsColumnTypeDatabaseTypeName
	driver.RowsColumnTypeLength
	driver.RowsColumnTypeNullable
	driver.RowsColumnTypePrecisionScale
	driver.RowsColumnTypeScanType
}

// rows are those of a statement that is put back afterwards.
type rows struct {
	sqliteRows
	putBack func() error
}

func (r *rows) Close() error {
	if r.putBack == nil {
		return nil
	}
	putBack := r.putBack
	r.putBack = nil
	return errors.Join(r.sqliteRows.Close(), putBack())
}
