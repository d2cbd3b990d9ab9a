package probe

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/sqllock/sqllock/internal/dbcall"
	"github.com/sqllock/sqllock/internal/stmt"
	"github.com/sqllock/sqllock/internal/transaction"
)

var (
	errNoMessages = errors.New("the option MultiStatements: the driver does not send several statements with arguments in one message: " +
		"set multiStatements=true and interpolateParams=true in the DSN")
	errOtherTable = errors.New("the option Acquirers: its pool uses a different lock table than the repository's pool")
)

// CheckConnections checks that the connections are what the options say. Otherwise the first acquisition would find
// out, or nothing would: a row could be acquired in another table than the one that it is released from. acquirers, unless
// it is nil, is the pool that acquires; messages reports whether the pool is to take several statements in one message.
func (q Question) CheckConnections(ctx context.Context, acquirers *sql.DB, messages bool) error {
	_, err := dbcall.CallInTime(ctx, q.Server, Opening, 0, func(ctx context.Context) (struct{}, error) {
		if messages {
			none, err := transaction.On(ctx, q.Pool, func(conn *sql.Conn) (none struct{}, err error) { return none, checkMessages(ctx, conn) })
			if err != nil {
				return none, err
			}
		}
		if acquirers != nil && acquirers != q.Pool.DB {
			return struct{}{}, q.checkTables(ctx, acquirers)
		}
		return struct{}{}, nil
	}, nil)
	return err
}

// checkMessages sends two statements with arguments in one message.
func checkMessages(ctx context.Context, db stmt.Executor) error {
	err := sendMessage(ctx, db)
	if err == nil {
		return nil
	}
	if _, plain := db.ExecContext(ctx, "SELECT 1"); plain != nil {
		return err // it is not about messages
	}
	return &dbcall.Error{Kind: dbcall.WrongSession, Err: fmt.Errorf("%w: %w", errNoMessages, err)}
}

func sendMessage(ctx context.Context, db stmt.Executor) error {
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
	return fmt.Errorf("%w: %d of 2 came", stmt.ErrNoOutcome, answers)
}

// checkTables compares the lock tables of two pools of PostgreSQL or MariaDB.
func (q Question) checkTables(ctx context.Context, acquirers *sql.DB) error {
	mine, err := q.placeOf(ctx, q.Pool)
	if err != nil {
		return ctx.Err() // another kind of server, which cannot say it
	}
	theirs, err := q.placeOf(ctx, transaction.Pool{DB: acquirers, Dialect: q.Pool.Dialect})
	if err != nil {
		return fmt.Errorf("ask Acquirers: %w", err)
	}
	if mine != theirs {
		return &dbcall.Error{Kind: dbcall.WrongSession, Err: errOtherTable}
	}
	return nil
}

// A place is where a table is.
type place struct {
	server   sql.NullString // when it started, or its address: no other one has the same
	database sql.NullString
	table    sql.NullInt64
}

func (q Question) placeOf(ctx context.Context, pool transaction.Pool) (place, error) {
	return transaction.On(ctx, pool, func(conn *sql.Conn) (p place, err error) {
		if q.Dialect.ReturnsHolder { // MariaDB
			err = conn.QueryRowContext(ctx, "SELECT CONCAT(@@hostname, ':', @@port, @@datadir), DATABASE()").Scan(&p.server, &p.database)
			return p, err
		}
		err = conn.QueryRowContext(ctx, "SELECT CAST(EXTRACT(EPOCH FROM pg_postmaster_start_time()) AS TEXT), current_database(), CAST(to_regclass($1) AS OID)", q.Names.Lock).
			Scan(&p.server, &p.database, &p.table)
		return p, err
	})
}
