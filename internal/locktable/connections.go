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
// that it is released from.
func (t *Table) checkConnections(ctx context.Context, config Config) error {
	_, err := callAlone(ctx, t.errors, opening, 0, func(ctx context.Context) (struct{}, error) {
		if config.MultiStatements {
			if err := checkMessages(ctx, config.DB); err != nil {
				return struct{}{}, err
			}
		}
		if config.Acquirers != nil {
			return struct{}{}, checkTables(ctx, config.DB, config.Acquirers, config.Names.Lock)
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

// checkTables compares the lock tables of two pools of PostgreSQL.
func checkTables(ctx context.Context, db, acquirers *sqlx.DB, lock string) error {
	mine, err := tableOf(ctx, db, lock)
	if err != nil {
		return ctx.Err() // another kind of server, which cannot say it
	}
	theirs, err := tableOf(ctx, acquirers, lock)
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
	started  sql.NullString // when the server did, which no other one has
	database string
	table    sql.NullInt64
}

func tableOf(ctx context.Context, db *sqlx.DB, name string) (p place, err error) {
	err = db.QueryRowContext(ctx, "SELECT CAST(EXTRACT(EPOCH FROM pg_postmaster_start_time()) AS TEXT), current_database(), CAST(to_regclass($1) AS OID)", name).
		Scan(&p.started, &p.database, &p.table)
	return p, err
}
