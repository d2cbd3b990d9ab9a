package locktable

import (
	"context"
	"errors"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock/internal/transaction"
)

// send sends a message, and gives the rows of its results to the functions, in order. If the
// message fails, its transaction is not left open.
func (t *Table) send(ctx context.Context, text string, args []any, scans ...func(*sqlx.Rows) error) error {
	return transaction.Send(ctx, t.pool.db, t.dialect, func(conn *sqlx.Conn) error {
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

// errNoOutcome is why it is not known what a message has done.
var errNoOutcome = errors.New("a message of several statements had no answer about its outcome: does a proxy change results?")

// acquireByMessage makes an attempt for one row by one message.
func (t *Table) acquireByMessage(ctx context.Context, c Claim) (got Result, err error) {
	s := t.statements.acquireMessage
	var acquired, number, answers int64
	err = t.send(ctx, s.text, s.args(values{Claim: c}), func(rows *sqlx.Rows) error {
		answers++
		return rows.Scan(&acquired, &number)
	})
	if err == nil && answers != 1 {
		err = errNoOutcome
	}
	if err != nil || acquired == 0 {
		return Result{}, err
	}
	got.Token, err = t.tokens.of(number)
	got.Acquired = err == nil
	return got, err
}

// acquireManyByMessage makes an attempt for many rows by one message. It returns the fencing
// tokens of those that were acquired, by LOCK_KEY.
func (t *Table) acquireManyByMessage(ctx context.Context, v values) (map[string]int64, error) {
	text, args := t.statements.acquireAllMessage.bindRows(t.statements.acquireRow, v)
	text, args, err := sqlx.In(text, args...)
	if err != nil {
		return nil, err
	}
	var number, answers int64
	owned := make(map[rowID]bool, len(v.rows))
	err = t.send(ctx, text, args,
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
		return nil, err
	}
	token, err := t.tokens.of(number)
	if err != nil {
		return nil, err
	}
	tokens := make(map[string]int64, len(owned))
	for _, c := range v.rows {
		if owned[c.id()] {
			tokens[c.LockKey] = token
		}
	}
	return tokens, nil
}
