package semaphore_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"
	"time"

	_ "modernc.org/sqlite"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/migrations"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// exampleRegistry returns a registry on a database in memory.
func exampleRegistry() (*sqllock.Registry, func()) {
	ctx := context.Background()
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		log.Fatal(err)
	}
	db.SetMaxOpenConns(1) // each connection would have a memory of its own
	if err := migrations.Up(ctx, db, dialect.SQLite(), nil); err != nil {
		log.Fatal(err)
	}
	repository, err := sqllock.NewRepository(ctx, db, dialect.SQLite(), nil)
	if err != nil {
		log.Fatal(err)
	}
	registry, err := sqllock.NewRegistry(repository, nil)
	if err != nil {
		log.Fatal(err)
	}
	return registry, func() { _, _ = registry.Close(ctx), db.Close() }
}

// At most three callers of all processes render at once.
func ExampleSemaphore_Execute() {
	registry, closeAll := exampleRegistry()
	defer closeAll()
	renders, err := semaphore.New(registry, "render", 3)
	if err != nil {
		log.Fatal(err)
	}
	err = renders.Execute(context.Background(), 1, func(ctx context.Context) error {
		fmt.Println("one of three")
		return ctx.Err() // not nil if the permit was lost meanwhile
	})
	fmt.Println(err)
	// Output:
	// one of three
	// <nil>
}

// A large job takes two permits by one lease, or none.
func ExampleSemaphore_Acquire() {
	registry, closeAll := exampleRegistry()
	defer closeAll()
	ctx := context.Background()
	renders, err := semaphore.New(registry, "render", 3)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := renders.WithAutoRenew(true).Acquire(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(len(lease.Keys()), "permits")

	// Work with lease.Context(), and then:
	fmt.Println(lease.Unlock(ctx))
	// Output:
	// 2 permits
	// <nil>
}

// A caller that would have to wait too long does something else.
func ExampleSemaphore_TryAcquireFor() {
	registry, closeAll := exampleRegistry()
	defer closeAll()
	ctx := context.Background()
	renders, err := semaphore.New(registry, "render", 3)
	if err != nil {
		log.Fatal(err)
	}
	other, err := renders.TryAcquire(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer other.Unlock(ctx) //nolint:errcheck // as callers do

	_, err = renders.TryAcquireFor(ctx, 2, 10*time.Millisecond)
	var held *sqllock.HeldError
	fmt.Println(errors.As(err, &held), held.Key)
	// Output: true render
}

// A page for operators shows who holds what.
func ExampleSemaphore_Holders() {
	registry, closeAll := exampleRegistry()
	defer closeAll()
	ctx := context.Background()
	renders, err := semaphore.New(registry, "render", 3)
	if err != nil {
		log.Fatal(err)
	}
	lease, err := renders.Acquire(ctx, 2)
	if err != nil {
		log.Fatal(err)
	}
	defer lease.Unlock(ctx) //nolint:errcheck // as callers do

	holders, err := renders.Holders(ctx)
	for _, h := range holders {
		fmt.Println(h.ID == lease.Holder(), h.Permits, h.Left > 0)
	}
	fmt.Println(err)
	// Output:
	// true 2 true
	// <nil>
}
