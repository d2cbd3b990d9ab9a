package sqllock

import (
	"context"
	"database/sql"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/jmoiron/sqlx"
)

// A Row is one row of the lock table.
type Row struct {
	// Region and LockKey are the primary key. LockKey is what the [KeyMapper]
	// made of the user's key.
	Region, LockKey string
	// Holder is CLIENT_ID: one acquisition of one client.
	Holder string
	// Age is the time since CREATED_DATE. It counts from the acquisition, in
	// the four-column layout from the last renewal, and in rows that Spring 7
	// took over from another holder from the row's first insertion.
	Age time.Duration
	// Left is the time until the lease ends, by the database's clock. It is
	// negative in an expired row.
	Left time.Duration
}

// free tells whether an attempt to acquire is worth while: there was no row, or
// its lease is over.
func (row Row) free() bool { return row == (Row{}) || row.Expired() }

// Expired tells whether anybody may take the row over.
func (row Row) Expired() bool { return row.Left < 0 }

// Peek reads the row of key. It writes nothing and locks nothing, so it is what
// waiting is made of. ok is false if there is no row. In the four-column layout
// Left is judged by ttl.
func (r *Repository) Peek(ctx context.Context, key string, ttl time.Duration) (row Row, ok bool, err error) {
	p, err := r.params(key, "-", ttl)
	if err != nil {
		return Row{}, false, err
	}
	return r.look(ctx, p)
}

func (r *Repository) look(ctx context.Context, p params) (row Row, ok bool, err error) {
	err = r.retry(ctx, "look up", p.name, func() (err error) {
		row, err = within(ctx, p.ttl, func(ctx context.Context) (Row, error) {
			row, _, err := r.peek(ctx, r.on(nil), p)
			return row, err
		}, nil)
		return err
	})
	return row, err == nil && row != (Row{}), err
}

// lookInTurn is look before a try, of a few callers at a time: many that try at once must not
// use up the pool.
func (r *Repository) lookInTurn(ctx context.Context, p params) (Row, error) {
	if r.batchers == nil {
		row, _, err := r.look(ctx, p)
		return row, err
	}
	if err := r.batchers.looks.take(ctx); err != nil {
		return Row{}, r.trouble(ctx, "look up", p.name, err)
	}
	row, _, err := r.look(ctx, p)
	r.batchers.looks.pass(err)
	return row, err
}

func (r *Repository) peek(ctx context.Context, db sqlx.QueryerContext, p params) (Row, bool, error) {
	var age, left int64
	row := Row{Region: r.region, LockKey: p.lockKey}
	err := db.QueryRowxContext(ctx, r.statements.peek.text, r.statements.peek.args(p)...).Scan(&row.Holder, &age, &left)
	if errors.Is(err, sql.ErrNoRows) {
		return Row{}, false, nil
	}
	row.Holder = unpadded(row.Holder)
	row.Age, row.Left = micros(age), micros(left)
	return row, err == nil, err
}

// List reads all rows of the table, of every region, in order of region and
// LOCK_KEY. In the four-column layout Left is judged by ttl.
func (r *Repository) List(ctx context.Context, ttl time.Duration) (list []Row, err error) {
	if err := checkTTL(ttl); err != nil {
		return nil, err
	}
	return call(ctx, r, "list", "", func() ([]Row, error) {
		return selectRows(ctx, r.db, r.statements.list, params{ttl: ttl})
	})
}

// selectRows returns the rows that a statement answers.
func selectRows(ctx context.Context, db sqlx.QueryerContext, s statement, p params) ([]Row, error) {
	text, args, err := s.bind(p)
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryxContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err tells
	var list []Row
	for rows.Next() {
		var row Row
		var age, left int64
		if err := rows.Scan(&row.Region, &row.LockKey, &row.Holder, &age, &left); err != nil {
			return nil, err
		}
		row.LockKey, row.Holder = unpadded(row.LockKey), unpadded(row.Holder)
		row.Age, row.Left = micros(age), micros(left)
		list = append(list, row)
	}
	if err := rows.Err(); err != nil {
		return nil, err // a part of a list is none
	}
	return list, nil
}

// micros converts what the database answered. It stops at the longest Duration,
// 292 years: rows written by hand may lie further ahead.
func micros(n int64) time.Duration {
	const most = math.MaxInt64 / int64(time.Microsecond)
	return time.Duration(min(max(n, -most), most)) * time.Microsecond
}

// selectTexts returns the one column of text that a statement answers.
func selectTexts(ctx context.Context, db sqlx.QueryerContext, s statement, p params) (texts []string, err error) {
	text, args, err := s.bind(p)
	if err != nil {
		return nil, err
	}
	if err := sqlx.SelectContext(ctx, db, &texts, text, args...); err != nil {
		return nil, err
	}
	for i := range texts {
		texts[i] = unpadded(texts[i])
	}
	return texts, nil
}

// selectRowIDs returns the rows that a statement answers, which has columns LOCK_KEY and
// CLIENT_ID.
func selectRowIDs(ctx context.Context, db sqlx.QueryerContext, s statement, p params) (map[rowID]bool, error) {
	text, args, err := s.bind(p)
	if err != nil {
		return nil, err
	}
	rows, err := db.QueryxContext(ctx, text, args...)
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }() // rows.Err tells
	ids := make(map[rowID]bool)
	for rows.Next() {
		var id rowID
		if err := rows.Scan(&id.lockKey, &id.holder); err != nil {
			return nil, err
		}
		ids[rowID{unpadded(id.lockKey), unpadded(id.holder)}] = true
	}
	return ids, rows.Err()
}

// unpadded returns the value of a column CHAR(36), which is padded with blanks.
func unpadded(text string) string { return strings.TrimRight(text, " ") }

// execIn returns how many rows a statement affected.
func execIn(ctx context.Context, db sqlx.ExecerContext, s statement, p params) (int64, error) {
	text, args, err := s.bind(p)
	if err != nil {
		return 0, err
	}
	result, err := db.ExecContext(ctx, text, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
