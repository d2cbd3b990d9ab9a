package notify_test

import (
	"context"
	"database/sql"
	"log"
	"os"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/drivers/notify"
)

func ExampleListen() {
	ctx, dsn := context.Background(), os.Getenv("DATABASE_URL")
	listener, err := notify.Listen(ctx, dsn, &notify.Options{OnConnection: func(err error) {
		if err != nil {
			log.Print("waiters poll: ", err)
		}
	}})
	if err != nil {
		log.Fatal(err)
	}
	defer func() { _ = listener.Close() }()

	db, err := sql.Open("postgres", dsn)
	if err != nil {
		log.Fatal(err)
	}
	repository, err := sqllock.NewRepository(ctx, db, dialect.Postgres(), &sqllock.RepositoryOptions{Notify: true})
	if err != nil {
		log.Fatal(err)
	}
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{Waker: listener})
	if err != nil {
		log.Fatal(err)
	}
	_ = registry.ExecuteLocked(ctx, "orders/42", func(context.Context) error { return nil })
}
