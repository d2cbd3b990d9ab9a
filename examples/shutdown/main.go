// Command shutdown works under a lock until it is told to stop (Ctrl-C, SIGTERM). It then finishes the
// step that it is in, and releases the lock, so another process need not wait for the lease to end.
//
//	go run ./shutdown
//
// It prints, if it is stopped after the first step:
//
//	step 1
//	stopping
//	released
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
)

// work does steps under the lock until stopping ends. It locks with another context, ctx: that of
// the lease is made from it, and must outlast the step that is under way.
func work(ctx, stopping context.Context, registry *sqllock.Registry) error {
	for stopping.Err() == nil {
		lease, err := registry.TryLockFor(ctx, "import", time.Second)
		if errors.Is(err, sqllock.ErrNotAcquired) {
			continue // another process works; look whether to stop
		}
		if err != nil {
			return err
		}
		return errors.Join(steps(lease.Context(), stopping), lease.Unlock(ctx))
	}
	return nil
}

// steps does steps until stopping ends. A step is interrupted only if the lease is lost, by ctx.
func steps(ctx, stopping context.Context) error {
	for number := 1; stopping.Err() == nil; number++ {
		fmt.Println("step", number)
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		select {
		case <-time.After(time.Second): // between two steps
		case <-stopping.Done():
		}
	}
	fmt.Println("stopping")
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	ctx := context.Background()
	stopping, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	dir, err := os.MkdirTemp("", "sqllock")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	registry, err := sqlitelock.Open(ctx, filepath.Join(dir, "locks.db"), nil)
	if err != nil {
		return err
	}
	if err := work(ctx, stopping, registry); err != nil {
		return err
	}
	if err := registry.Close(ctx); err != nil { // releases what is left
		return err
	}
	fmt.Println("released")
	return nil
}
