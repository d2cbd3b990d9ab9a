// Command transfer moves money between two accounts from many goroutines of two processes. Each
// transfer commits under the lock of both accounts, or not at all.
//
//	go run ./transfer
//
// It prints:
//
//	40 transfers
//	account 1: 60
//	account 2: 140
package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

// transfer moves an amount. The transaction commits only if the lock is still held then, however long
// this process was stopped.
func transfer(ctx context.Context, registry *sqllock.Registry, db *sql.DB, from, to, amount int) error {
	return registry.ExecuteLockedTx(ctx, "accounts", db, nil, func(ctx context.Context, tx *sql.Tx) error {
		var balance int
		if err := tx.QueryRowContext(ctx, "SELECT balance FROM account WHERE id = ?", from).Scan(&balance); err != nil {
			return err
		}
		if balance < amount {
			return fmt.Errorf("account %d has %d only", from, balance) // rolls back
		}
		if _, err := tx.ExecContext(ctx, "UPDATE account SET balance = ? WHERE id = ?", balance-amount, from); err != nil {
			return err
		}
		_, err := tx.ExecContext(ctx, "UPDATE account SET balance = balance + ? WHERE id = ?", amount, to)
		return err
	})
}

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	dir, err := os.MkdirTemp("", "sqllock")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	done := make(chan error)
	var db *sql.DB
	for range 2 { // two processes
		var registry *sqllock.Registry
		if db, registry, err = open(ctx, filepath.Join(dir, "bank.db")); err != nil {
			return err
		}
		defer db.Close()
		defer registry.Close(ctx)
		for range 20 {
			go func(db *sql.DB) { done <- transfer(ctx, registry, db, 1, 2, 1) }(db)
		}
	}
	for range 40 {
		err = errors.Join(err, <-done)
	}
	if err != nil {
		return err
	}
	fmt.Println("40 transfers")
	for id := 1; id <= 2; id++ {
		var balance int
		if err := db.QueryRowContext(ctx, "SELECT balance FROM account WHERE id = ?", id).Scan(&balance); err != nil {
			return err
		}
		fmt.Printf("account %d: %d\n", id, balance)
	}
	return nil
}

// open opens the application's database, which has the locks as well.
func open(ctx context.Context, file string) (*sql.DB, *sqllock.Registry, error) {
	db, err := sql.Open("sqlite", "file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	if err != nil {
		return nil, nil, err
	}
	if _, err := db.ExecContext(ctx, `
		CREATE TABLE IF NOT EXISTS account (id INTEGER PRIMARY KEY, balance INTEGER NOT NULL);
		INSERT INTO account VALUES (1, 100), (2, 100) ON CONFLICT DO NOTHING`); err != nil {
		return nil, nil, err
	}
	if err := migrations.Up(ctx, db, dialect.SQLite(), nil); err != nil {
		return nil, nil, err
	}
	repository, err := sqllock.NewRepository(ctx, db, dialect.SQLite(), nil)
	if err != nil {
		return nil, nil, err
	}
	registry, err := sqllock.NewRegistry(repository, nil)
	return db, registry, err
}
