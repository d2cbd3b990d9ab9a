package locktable

import (
	"context"
	"database/sql"
	"strings"
	"time"
)

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
