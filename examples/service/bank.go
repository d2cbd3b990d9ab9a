package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"time"

	"github.com/sqllock/sqllock"
)

var (
	errNoAccount = errors.New("no such account")
	errNoMoney   = errors.New("the account has too little money")
)

// A bank is what all instances share: the database.
type bank struct {
	db       *sql.DB
	registry *sqllock.Registry
}

// A transfer moves an amount between two accounts.
type transfer struct {
	ID     string `json:"-"`
	From   int64  `json:"from"`
	To     int64  `json:"to"`
	Amount int64  `json:"amount"`
}

// transfer makes a transfer under the locks of both accounts, so that no other one changes their balances between the
// check and the update. The transaction is guarded (Lease.Guard): it commits before another instance can have one of
// the locks, or not at all, however long this process was stopped. After a [sqllock.ErrDatabase] it is not known whether
// it was committed. A transfer that is made again is made once.
func (b *bank) transfer(ctx context.Context, t transfer) error {
	accounts, err := b.registry.ObtainAll(fmt.Sprintf("account/%d", t.From), fmt.Sprintf("account/%d", t.To))
	if err != nil {
		return err
	}
	return accounts.ExecuteLockedTxFor(ctx, 5*time.Second, b.db, nil, func(ctx context.Context, tx *sql.Tx) error {
		made, err := tx.ExecContext(ctx,
			"INSERT INTO transfer (id, source, target, amount) VALUES ($1, $2, $3, $4) ON CONFLICT (id) DO NOTHING", t.ID, t.From, t.To, t.Amount)
		if err != nil {
			return err
		}
		if n, err := made.RowsAffected(); n == 0 || err != nil {
			return err // its client did not get our first answer
		}
		balance, err := balanceOf(ctx, tx, t.From)
		if err != nil {
			return err
		}
		if balance < t.Amount {
			return errNoMoney // rolls back
		}
		for account, amount := range map[int64]int64{t.From: -t.Amount, t.To: t.Amount} {
			updated, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance + $1 WHERE id = $2", amount, account)
			if err != nil {
				return err
			}
			if n, err := updated.RowsAffected(); err != nil {
				return err
			} else if n == 0 {
				return errNoAccount
			}
		}
		return nil
	})
}

// balanceOf reads a balance, in a transaction or without one.
func balanceOf(ctx context.Context, db interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
}, account int64,
) (balance int64, err error) {
	err = db.QueryRowContext(ctx, "SELECT balance FROM account WHERE id = $1", account).Scan(&balance)
	if errors.Is(err, sql.ErrNoRows) {
		return 0, errNoAccount
	}
	return balance, err
}

// createTables creates the tables of the bank. All instances call it when they start; under the lock one of them
// creates the tables, and the others find them.
func createTables(ctx context.Context, db *sql.DB, registry *sqllock.Registry) error {
	return registry.ExecuteLocked(ctx, "tables", func(ctx context.Context) error {
		for _, statement := range []string{
			"CREATE TABLE IF NOT EXISTS account (id BIGINT PRIMARY KEY, balance BIGINT NOT NULL)",
			"CREATE TABLE IF NOT EXISTS transfer (id VARCHAR(100) PRIMARY KEY, source BIGINT NOT NULL, target BIGINT NOT NULL, amount BIGINT NOT NULL)",
			"CREATE TABLE IF NOT EXISTS closing (day VARCHAR(10) PRIMARY KEY, total BIGINT NOT NULL)",
			"INSERT INTO account (id, balance) VALUES (1, 100), (2, 100), (3, 100) ON CONFLICT (id) DO NOTHING",
		} {
			if _, err := db.ExecContext(ctx, statement); err != nil {
				return err
			}
		}
		return nil
	})
}
