// Command gorm has the locks use the database that an application has opened with GORM, and writes
// with GORM in a transaction that commits under the lock or not at all.
//
//	go run ./gorm
//
// It prints:
//
//	order 42 is shipped
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/glebarez/sqlite"
	"gorm.io/gorm"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

// An Order is a row of the application.
type Order struct {
	ID      int
	Shipped bool
}

// ship writes under the lock of the order. Guard fails if the lock is lost. Otherwise no other process
// can acquire it until the transaction has ended.
func ship(ctx context.Context, registry *sqllock.Registry, db *gorm.DB, id int) error {
	key := fmt.Sprint("orders/", id)
	return registry.ExecuteLocked(ctx, key, func(ctx context.Context) error {
		lease, err := registry.LeaseFrom(ctx, key)
		if err != nil {
			return err
		}
		return db.WithContext(ctx).Transaction(func(tx *gorm.DB) error {
			if err := lease.Guard(ctx, tx.Statement.ConnPool.(sqllock.Tx)); err != nil {
				return err
			}
			return tx.Save(&Order{ID: id, Shipped: true}).Error
		})
	})
}

// newRegistry returns locks over the pool of GORM.
func newRegistry(ctx context.Context, db *gorm.DB) (*sqllock.Registry, error) {
	pool, err := db.DB() // a *sql.DB
	if err != nil {
		return nil, err
	}
	if err := migrations.Up(ctx, pool, dialect.SQLite(), nil); err != nil { // or sqllock migrate up, when deploying
		return nil, err
	}
	repository, err := sqllock.NewRepository(ctx, pool, dialect.SQLite(), nil)
	if err != nil {
		return nil, err
	}
	return sqllock.NewRegistry(repository, nil)
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
	file := filepath.Join(dir, "app.db")
	db, err := gorm.Open(sqlite.Open("file:"+file+"?_pragma=busy_timeout(10000)&_pragma=journal_mode(WAL)&_txlock=immediate"), nil)
	if err != nil {
		return err
	}
	if err := db.AutoMigrate(&Order{}); err != nil {
		return err
	}
	registry, err := newRegistry(ctx, db)
	if err != nil {
		return err
	}
	defer registry.Close(ctx)
	if err := ship(ctx, registry, db, 42); err != nil {
		return err
	}
	var order Order
	if err := db.First(&order, 42).Error; err != nil {
		return err
	}
	if order.Shipped {
		fmt.Println("order 42 is shipped")
	}
	return nil
}
