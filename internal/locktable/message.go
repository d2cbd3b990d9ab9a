package locktable

import (
	"context"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/transaction"
)

// send sends a message, and gives the rows of its results to the functions, in order. If the
// message fails, its transaction is not left open. It calls begin each time that it sends the message:
// what was answered before does not count.
func (t *Table) send(ctx context.Context, text string, args []any, begin func(), scans ...func(*sqlx.Rows) error) (resent bool, err error) {
	return transaction.Send(ctx, t.pool.db, t.dialect, func(conn *sqlx.Conn) error {
		begin()
		rows, err := conn.QueryxContext(ctx, text, args...)
		if err != nil {
			return err
		}
		defer func() { _ = rows.Close() }() // rows.Err reports what is wrong
		for _, scan := range scans {
			for rows.Next() {
				if err := scan(rows); err != nil {
					return err
				}
			}
			// The last time there is none: that waits for the answer to COMMIT.
			rows.NextResultSet()
		}
		return rows.Err()
	})
}

// acquireByMessage makes an attempt for one row by one message.
func (t *Table) acquireByMessage(ctx context.Context, c Claim) (got Result, resent bool, err error) {
	s := t.statements.acquireMessage
	var acquired, number, answers int64
	begin := func() { got, acquired, number, answers = Result{}, 0, 0, 0 }
	resent, err = t.send(ctx, s.text, s.args(values{Claim: c}), begin, func(rows *sqlx.Rows) (err error) {
		answers++
		if t.dialect.ReturnsHolder {
			got, _, err = t.scanResult(rows, c, false)
			return err
		}
		return rows.Scan(&acquired, &number)
	})
	if err == nil && answers != 1 {
		err = errNoOutcome
	}
	switch {
	case err != nil:
		return Result{}, resent, err
	case t.dialect.ReturnsHolder || acquired == 0:
		return got, resent, nil
	}
	got.Token, err = t.tokens.of(number)
	got.Acquired = err == nil
	return got, resent, err
}

// acquireManyByMessage makes an attempt for many rows by one message. It returns the fencing
// tokens of those that were acquired, by LOCK_KEY.
func (t *Table) acquireManyByMessage(ctx context.Context, v values) (tokens map[string]int64, resent bool, err error) {
	text, args, err := t.statements.acquireAllMessage.bindMany(t.statements.acquireRow, v)
	if err != nil {
		return nil, false, err
	}
	if t.dialect.ReturnsHolder {
		var got acquired
		if resent, err = t.send(ctx, text, args, func() { got = t.newAcquired(v) }, func(rows *sqlx.Rows) error { return got.scan(rows, false) }); err == nil {
			tokens, err = got.result()
		}
		return tokens, resent, err
	}
	var number, answers int64
	var owned map[rowID]bool
	resent, err = t.send(ctx, text, args,
		func() { answers, owned = 0, make(map[rowID]bool, len(v.rows)) },
		func(rows *sqlx.Rows) error {
			answers++
			return rows.Scan(&number)
		},
		func(rows *sqlx.Rows) error {
			id, err := scanRowID(rows)
			owned[id] = true
			return err
		})
	if err == nil && answers != 1 {
		err = errNoOutcome
	}
	if err != nil {
		return nil, resent, err
	}
	token, err := t.tokens.of(number)
	if err != nil {
		return nil, resent, err
	}
	tokens = make(map[string]int64, len(owned))
	for _, c := range v.rows {
		if owned[c.id()] {
			tokens[c.LockKey] = token
		}
	}
	return tokens, resent, nil
}
