package locktable

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jmoiron/sqlx"
)

var (
	errNoMessages = errors.New("the option MultiStatements: the connections do not take several statements with arguments in one message: " +
		"set multiStatements=true and interpolateParams=true in the DSN")
	errOtherTable = errors.New("the option Acquirers: they are connected to another lock table than the repository's pool")
)

// checkConnections checks that the connections are what the options say. Otherwise the first
// acquisition would find out, or nothing would: a row could be acquired in another table than the one
// that it is released from. messages reports whether the pool is to take several statements in one
// message.
func (t *Table) checkConnections(ctx context.Context, messages bool) error {
	_, err := callAlone(ctx, t.errors, opening, 0, func(ctx context.Context) (struct{}, error) {
		if messages {
			if err := checkMessages(ctx, t.pool.db); err != nil {
				return struct{}{}, err
			}
		}
		if t.acquirers != nil && t.acquirers.db.DB != t.pool.db.DB {
			return struct{}{}, t.checkTables(ctx, t.pool.db, t.acquirers.db)
		}
		return struct{}{}, nil
	}, nil)
	return err
}

// checkMessages sends two statements with arguments in one message.
func checkMessages(ctx context.Context, db *sqlx.DB) error {
	err := sendMessage(ctx, db)
	if err == nil {
		return nil
	}
	if _, plain := db.ExecContext(ctx, "SELECT 1"); plain != nil {
		return err // it is not about messages
	}
	return &Error{opening.op, WrongSession, fmt.Errorf("%w: %w", errNoMessages, err)}
}

func sendMessage(ctx context.Context, db *sqlx.DB) error {
	rows, err := db.QueryContext(ctx, "SELECT ?; SELECT ?", 1, 2)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
	answers := 0
	for more := true; more; more = rows.NextResultSet() {
		for rows.Next() {
			answers++
		}
	}
	if err := rows.Err(); err != nil || answers == 2 {
		return err
	}
	return fmt.Errorf("%w: %d of 2 came", errNoOutcome, answers)
}

// checkTables compares the lock tables of two pools of PostgreSQL or MariaDB.
func (t *Table) checkTables(ctx context.Context, db, acquirers *sqlx.DB) error {
	mine, err := t.placeOf(ctx, db)
	if err != nil {
		return ctx.Err() // another kind of server, which cannot say it
	}
	theirs, err := t.placeOf(ctx, acquirers)
	if err != nil {
		return fmt.Errorf("ask Acquirers: %w", err)
	}
	if mine != theirs {
		return &Error{opening.op, WrongSession, errOtherTable}
	}
	return nil
}

// A place is where a table is.
type place struct {
	server   sql.NullString // when it started, or its address: no other one has the same
	database sql.NullString
	table    sql.NullInt64
}

func (t *Table) placeOf(ctx context.Context, db *sqlx.DB) (p place, err error) {
	if t.dialect.ReturnsHolder { // MariaDB
		err = db.QueryRowContext(ctx, "SELECT CONCAT(@@hostname, ':', @@port, @@datadir), DATABASE()").Scan(&p.server, &p.database)
		return p, err
	}
	err = db.QueryRowContext(ctx, "SELECT CAST(EXTRACT(EPOCH FROM pg_postmaster_start_time()) AS TEXT), current_database(), CAST(to_regclass($1) AS OID)", t.names.Lock).
		Scan(&p.server, &p.database, &p.table)
	return p, err
}
