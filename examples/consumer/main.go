// Command consumer has two consumers of one stream of events. One of them processes it, in order; the
// other takes over when the first ends.
//
//	go run ./consumer
//
// It prints:
//
//	consumer 1: event 1
//	consumer 1: event 2
//	consumer 1: event 3
//	consumer 1 stops
//	consumer 2: event 4
//	consumer 2: event 5
//	consumer 2: event 6
//	consumer 2 stops
package main

import (
	"context"
	"errors"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync/atomic"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
)

// consume processes events for as long as it holds the lock, and waits for it before. A consumer
// that loses the lock waits for it again.
func consume(ctx context.Context, registry *sqllock.Registry, next func(context.Context) error) error {
	for ctx.Err() == nil {
		err := registry.ExecuteLocked(ctx, "events", func(ctx context.Context) error {
			for ctx.Err() == nil { // ctx ends before another consumer can start
				if err := next(ctx); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil && ctx.Err() == nil && !errors.Is(err, sqllock.ErrLockLost) {
			return err
		}
	}
	return nil
}

func main() {
	if err := run(); err != nil {
		log.Fatal(err)
	}
}

func run() error {
	dir, err := os.MkdirTemp("", "sqllock")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	var stream atomic.Int32 // how far the stream was read; an application keeps that in the database
	began, ended := make(chan bool), make(chan error)
	for number := range 2 {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		registry, err := sqlitelock.Open(ctx, filepath.Join(dir, "locks.db"), nil)
		if err != nil {
			return err
		}
		defer registry.Close(context.WithoutCancel(ctx))
		go func() {
			processed := 0
			ended <- consume(ctx, registry, func(context.Context) error {
				event := stream.Add(1)
				if event == 1 {
					close(began)
				}
				fmt.Printf("consumer %d: event %d\n", number+1, event)
				if processed++; processed == 3 {
					fmt.Printf("consumer %d stops\n", number+1)
					cancel()
				}
				return nil
			})
		}()
		<-began // the second consumer comes later
	}
	return errors.Join(<-ended, <-ended)
}
