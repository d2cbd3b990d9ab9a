package semaphore_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"time"

	"github.com/sqllock/sqllock"
	fixtures "github.com/sqllock/sqllock/internal/test/fixture"
	"github.com/sqllock/sqllock/sync/semaphore"
)

// At most three callers of all processes render at once.
func ExampleSemaphore_Execute() {
	registry, closeAll := fixtures.Example("")
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
	registry, closeAll := fixtures.Example("")
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
	registry, closeAll := fixtures.Example("")
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
	registry, closeAll := fixtures.Example("")
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
