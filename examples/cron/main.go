// Command cron runs the same cron job on three instances: each run happens on one of them.
//
//	go run ./cron
//
// It prints:
//
//	report 1
//	report 2
//	report 3
package main

import (
	"context"
	"fmt"
	"log"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock"
	cronlock "github.com/sqllock/sqllock/adapters/cron"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
)

// instance is what each instance of an application does: it starts its jobs, until ctx ends.
func instance(ctx context.Context, registry *sqllock.Registry, report func(context.Context) error) error {
	c := cron.New()
	// The minimum hold is half of the interval: it covers the difference of the clocks.
	_, err := c.AddJob("@every 1s", cronlock.Job(ctx, registry, "report", 500*time.Millisecond, nil, report))
	if err != nil {
		return err
	}
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done() // wait for a job that runs
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
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var reports atomic.Int32
	ended := make(chan error)
	for range 3 {
		registry, err := sqlitelock.Open(ctx, filepath.Join(dir, "locks.db"), nil)
		if err != nil {
			return err
		}
		defer registry.Close(context.WithoutCancel(ctx))
		go func() {
			ended <- instance(ctx, registry, func(context.Context) error {
				n := reports.Add(1)
				if n <= 3 {
					fmt.Println("report", n)
				} else {
					cancel() // that is enough
				}
				return nil
			})
		}()
	}
	for range 3 {
		if err := <-ended; err != nil {
			return err
		}
	}
	return nil
}
