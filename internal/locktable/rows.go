package locktable

import (
	"cmp"
	"context"
	"database/sql"
	"strings"
	"time"
)

// An executor is what a statement runs on: a connection, a transaction of ours or of the user's, or a pool.
type executor interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// query runs s and gives each row that it answers to scan.
func query(ctx context.Context, db executor, s statement, v values, scan func(*sql.Rows) error) error {
	text, args, err := s.bind(v)
	if err != nil {
		return err
	}
	return queryText(ctx, db, text, args, scan)
}

// queryText is query for a text whose arguments are bound.
func queryText(ctx context.Context, db executor, text string, args []any, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, text, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

// queryFirst runs s, which answers one row at most, and gives it to scan.
func queryFirst(ctx context.Context, db executor, s statement, v values, scan func(*sql.Rows) error) error {
	rows, err := db.QueryContext(ctx, s.text, s.args(v)...)
	if err != nil {
		return err
	}
	if rows.Next() {
		err = scan(rows)
	}
	// Close reads what is left of the answer: the statement may have failed after the row. It returns nil
	// if ctx has ended and database/sql has closed rows; then Err has the reason.
	return cmp.Or(err, rows.Close(), rows.Err()) //nolint:sqlclosecheck // its error counts, and comes before Err's
}

// selectRows returns the rows that s answers, or none if they are not complete.
func selectRows(ctx context.Context, db executor, s statement, v values) (list []Row, err error) {
	err = query(ctx, db, s, v, func(rows *sql.Rows) error {
		var row Row
		var age, left sql.NullInt64
		if err := rows.Scan(&row.Region, &row.LockKey, &row.Holder, &age, &left); err != nil {
			return err
		}
		row.LockKey, row.Holder = unpadded(row.LockKey), unpadded(row.Holder)
		row.Age, row.Left = micros(age), micros(left)
		list = append(list, row)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return list, nil
}

// selectRowIDs returns the rows that s answers, which has columns LOCK_KEY and CLIENT_ID.
func selectRowIDs(ctx context.Context, db executor, s statement, v values) (map[rowID]bool, error) {
	ids := make(map[rowID]bool)
	err := query(ctx, db, s, v, func(rows *sql.Rows) error {
		id, err := scanRowID(rows)
		ids[id] = true
		return err
	})
	return ids, err
}

// scanRowID reads LOCK_KEY and CLIENT_ID.
func scanRowID(rows *sql.Rows) (rowID, error) {
	var id rowID
	err := rows.Scan(&id.lockKey, &id.holder)
	return rowID{unpadded(id.lockKey), unpadded(id.holder)}, err
}

// selectTexts returns the one column of text that s answers.
func selectTexts(ctx context.Context, db executor, s statement, v values) (texts []string, err error) {
	err = query(ctx, db, s, v, func(rows *sql.Rows) error {
		var text string
		err := rows.Scan(&text)
		texts = append(texts, unpadded(text))
		return err
	})
	return texts, err
}

// exec returns how many rows s affected.
func exec(ctx context.Context, db executor, s statement, v values) (int64, error) {
	text, args, err := s.bind(v)
	if err != nil {
		return 0, err
	}
	return affected(db.ExecContext(ctx, text, args...))
}

// affected returns how many rows a statement with that result affected.
func affected(result sql.Result, err error) (int64, error) {
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}

// micros converts what the database answered. It stops at 290 years, to which a program can add a while:
// rows written by hand may lie further ahead. So it does for NULL: the database cannot read the instant
// that another program has written, and does not take the row for expired either.
func micros(n sql.NullInt64) time.Duration {
	const most = 290 * 365 * 24 * int64(time.Hour/time.Microsecond)
	if !n.Valid {
		n.Int64 = most
	}
	return time.Duration(min(max(n.Int64, -most), most)) * time.Microsecond
}

// unpadded returns the value of a column CHAR(36), which is padded with blanks.
func unpadded(text string) string { return strings.TrimRight(text, " ") }
