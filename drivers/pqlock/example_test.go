package pqlock_test

import (
	"context"
	"fmt"
	"log"
	"os"

	"github.com/sqllock/sqllock/drivers/pqlock"
)

// A program that works under a lock. `sqllock migrate up` has created the table once.
func Example() {
	ctx := context.Background()
	registry, err := pqlock.Open(ctx, os.Getenv("DATABASE_URL"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer registry.Close(ctx)
	err = registry.ExecuteLocked(ctx, "orders/42", func(ctx context.Context) error {
		fmt.Println("the only one")
		return ctx.Err() // not nil if the lock was lost meanwhile
	})
	fmt.Println(err)
}
