package riverlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"

	"github.com/sqllock/sqllock"
	riverlock "github.com/sqllock/sqllock/adapters/river"
	"github.com/sqllock/sqllock/drivers/pgxlock"
	"github.com/sqllock/sqllock/internal/test/child"
)

const (
	dsnVariable   = "RIVERLOCK_TEST_DSN"
	queueVariable = "RIVERLOCK_TEST_QUEUE"
)

// runClient is a client of one queue. It prints what becomes of its jobs, which end when it is
// told.
func runClient(ctx context.Context, told <-chan string) (err error) {
	dsn := os.Getenv(dsnVariable)
	pool, err := pgxpool.New(ctx, dsn)
	if err != nil {
		return err
	}
	defer pool.Close()
	registry, err := pgxlock.Open(ctx, dsn, &pgxlock.Options{
		Registry: sqllock.RegistryOptions{TTL: time.Hour}, Migrate: true,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, registry.Close(context.WithoutCancel(ctx))) }()
	c, err := newClient(pool, os.Getenv(queueVariable), riverlock.Middleware(registry, byKind, soon), func(context.Context) error {
		fmt.Println("works")
		<-told
		return nil
	})
	if err != nil {
		return err
	}
	events, unsubscribe := c.Subscribe(river.EventKindJobCompleted, river.EventKindJobFailed, river.EventKindJobSnoozed)
	defer unsubscribe()
	if err := c.Start(context.WithoutCancel(ctx)); err != nil {
		return err
	}
	for ctx.Err() == nil {
		select {
		case event := <-events:
			fmt.Println(event.Kind)
		case <-ctx.Done():
		}
	}
	return c.Stop(context.WithoutCancel(ctx))
}

// TestTwoProcesses has jobs of one key in the queues of two processes. Its processes take seconds
// to start and to stop.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	pool, dsn := newRiver(t)
	inserter, err := newClient(pool, "none", riverlock.Middleware(nil, byKind, nil), nil)
	must(t, err)
	startQueue := func(queue string) *child.Process {
		insert(t, inserter, queue)
		return child.Start(t, "client", dsnVariable+"="+dsn, queueVariable+"="+queue)
	}
	first := startQueue("a")
	first.Want("works")
	second := startQueue("b")
	for range 3 { // a job may be tried once
		second.Want("job_snoozed")
	}
	first.Tell("end")
	first.Want("job_completed")
	line := second.Next()
	for line == "job_snoozed" {
		line = second.Next()
	}
	if line != "works" {
		t.Fatal(line)
	}
	second.Tell("end")
	second.Want("job_completed")
	first.Stop()
	second.Stop()
}
