// Command longjob works for longer than its lease, which is renewed meanwhile. A second process
// finds the lock held all the time, and skips its run.
//
//	go run ./longjob
//
// It prints:
//
//	started; the lease lasts for 10s
//	another process skips: held
//	done after more than 12s
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
)

const ttl = 10 * time.Second // how long the lock stays taken after a crash

// work does steps of a second. It stops when ctx ends: the lease is lost then, and another process
// may start.
func work(ctx context.Context, steps int) error {
	for range steps {
		select {
		case <-time.After(time.Second):
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return nil
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
	registry, err := open(ctx, dir)
	if err != nil {
		return err
	}
	defer registry.Close(ctx)
	other, err := open(ctx, dir) // another process
	if err != nil {
		return err
	}
	defer other.Close(ctx)
	return registry.ExecuteLocked(ctx, "import", func(leased context.Context) error {
		fmt.Printf("started; the lease lasts for %v\n", ttl)
		if err := work(leased, 11); err != nil {
			return err
		}
		if _, err := other.TryLock(ctx, "import"); !errors.Is(err, sqllock.ErrNotAcquired) {
			return fmt.Errorf("another process: %w", err)
		}
		fmt.Println("another process skips: held")
		if err := work(leased, 1); err != nil {
			return err
		}
		fmt.Println("done after more than 12s")
		return nil
	})
}

func open(ctx context.Context, dir string) (*sqllock.Registry, error) {
	return sqlitelock.Open(ctx, filepath.Join(dir, "locks.db"), &sqlitelock.Options{
		Registry: sqllock.RegistryOptions{TTL: ttl},
	})
}
