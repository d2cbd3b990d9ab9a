// Command pgxpool has the locks use the pgxpool that an application has already, and guards a
// transaction of it.
//
//	DATABASE_URL=postgres://localhost/app go run ./pgxpool
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

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
)

func main() {
	if err := run(context.Background()); err != nil {
		log.Fatal(err)
	}
}

func run(ctx context.Context) error {
	pool, err := pgxpool.New(ctx, os.Getenv("DATABASE_URL")) // the application's
	if err != nil {
		return err
	}
	defer pool.Close()

	db := stdlib.OpenDBFromPool(pool) // the same connections, for database/sql
	defer db.Close()
	if err := migrations.Up(ctx, db, dialect.Postgres(), nil); err != nil { // or sqllock migrate up, when deploying
		return err
	}
	repository, err := sqllock.NewRepository(ctx, db, dialect.Postgres(), nil)
	if err != nil {
		return err
	}
	registry, err := sqllock.NewRegistry(repository, nil)
	if err != nil {
		return err
	}
	defer registry.Close(ctx)

	if _, err := pool.Exec(ctx, "CREATE TABLE IF NOT EXISTS shipped (id bigint PRIMARY KEY)"); err != nil {
		return err
	}
	if err := ship(ctx, registry, pool, 42); err != nil {
		return err
	}
	fmt.Println("order 42 is shipped")
	return nil
}

// ship writes in a transaction of the pool that commits under the lock or not at all.
func ship(ctx context.Context, registry *sqllock.Registry, pool *pgxpool.Pool, order int) error {
	key := fmt.Sprint("orders/", order)
	return registry.ExecuteLocked(ctx, key, func(ctx context.Context) error {
		lease, err := registry.LeaseFrom(ctx, key)
		if err != nil {
			return err
		}
		return pgx.BeginFunc(ctx, pool, func(tx pgx.Tx) error {
			if err := sqllock.GuardFunc(ctx, lease, tx.QueryRow); err != nil {
				return err
			}
			_, err := tx.Exec(ctx, "INSERT INTO shipped VALUES ($1) ON CONFLICT DO NOTHING", order)
			return err
		})
	})
}
