package rwlock_test

import (
	"context"
	"errors"
	"fmt"
	"log"

	"github.com/sqllock/sqllock"
	fixtures "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/sync/rwlock"
)

// Many read at the same time; a writer is alone.
func Example() {
	ctx := context.Background()
	registry, remove := fixtures.Example("")
	defer remove()

	prices, err := rwlock.New(registry, "prices")
	if err != nil {
		log.Fatal(err)
	}
	one, err := prices.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	two, err := prices.RLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	readers, err := prices.Readers(ctx)
	fmt.Println(len(readers), "readers", err)
	_, err = prices.TryLock(ctx)
	fmt.Println("a writer is refused:", errors.Is(err, sqllock.ErrNotAcquired))

	fmt.Println(one.Unlock(ctx), two.Unlock(ctx))
	err = prices.ExecuteLocked(ctx, func(context.Context) error {
		fmt.Println("the writer is alone")
		return nil
	})
	fmt.Println(err)
	// Output:
	// 2 readers <nil>
	// a writer is refused: true
	// <nil> <nil>
	// the writer is alone
	// <nil>
}

// A writer publishes what it has changed, and goes on reading it. No other writer comes in between.
func ExampleLock_Downgrade() {
	ctx := context.Background()
	registry, remove := fixtures.Example("")
	defer remove()
	prices, err := rwlock.New(registry, "prices")
	if err != nil {
		log.Fatal(err)
	}

	lease, err := prices.Lock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	// Change the prices under lease.Context().
	reader, err := prices.Downgrade(ctx, lease) // ctx, since lease.Context() ends
	if err != nil {
		_ = lease.Unlock(ctx)
		log.Fatal(err)
	}
	// Read them under reader.Context().
	beside, err := prices.TryRLock(ctx)
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println("another reader is in:", beside.Unlock(ctx))
	_, err = prices.TryLock(ctx)
	fmt.Println("a writer is refused:", errors.Is(err, sqllock.ErrNotAcquired))
	fmt.Println(reader.Unlock(ctx))
	// Output:
	// another reader is in: <nil>
	// a writer is refused: true
	// <nil>
}
