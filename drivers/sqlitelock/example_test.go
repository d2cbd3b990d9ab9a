package sqlitelock_test

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"

	"github.com/sqllock/sqllock/drivers/sqlitelock"
)

// A program that works under a lock. The file and its table are created.
func Example() {
	ctx := context.Background()
	registry, err := sqlitelock.Open(ctx, filepath.Join(os.TempDir(), "sqllock-example.db"), nil)
	if err != nil {
		log.Fatal(err)
	}
	defer registry.Close(ctx)
	err = registry.ExecuteLocked(ctx, "orders/42", func(ctx context.Context) error {
		fmt.Println("the only one")
		return ctx.Err() // not nil if the lock was lost meanwhile
	})
	fmt.Println(err)
	// Output:
	// the only one
	// <nil>
}
