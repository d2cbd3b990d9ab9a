package cronlock_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/robfig/cron/v3"

	"github.com/sqllock/sqllock"
	cronlock "github.com/sqllock/sqllock/adapters/cron"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
	"github.com/sqllock/sqllock/internal/test/child"
)

const fileVariable = "CRONLOCK_TEST_FILE"

// instance schedules a job for each second, and prints what became of each run. Its leases last for
// an hour, so the speed of the machine does not matter. The job ends when it is told to.
func instance(ctx context.Context, told <-chan string) error {
	registry, err := sqlitelock.Open(ctx, os.Getenv(fileVariable), &sqlitelock.Options{
		Registry: sqllock.RegistryOptions{TTL: time.Hour},
	})
	if err != nil {
		return err
	}
	c := cron.New()
	c.Schedule(cron.Every(time.Second), cronlock.Job(ctx, registry, "report", time.Hour, printer{}, func(ctx context.Context) error {
		fmt.Println("runs")
		select {
		case <-told:
			return errors.New("told to end")
		case <-ctx.Done():
			return ctx.Err()
		}
	}))
	c.Start()
	<-ctx.Done()
	<-c.Stop().Done()
	return registry.Close(context.WithoutCancel(ctx))
}

// A printer is a cron.Logger that prints what was logged.
type printer struct{}

func (printer) Info(message string, _ ...any)           { fmt.Println(message) }
func (printer) Error(_ error, message string, _ ...any) { fmt.Println(message) }

// TestTwoProcesses runs one job in one of two processes, and then in none that starts later. It takes
// seconds, because cron's shortest interval is one.
func TestTwoProcesses(t *testing.T) {
	t.Parallel()
	file := fileVariable + "=" + filepath.Join(t.TempDir(), "locks.db")
	first := child.Start(t, "instance", file)
	first.Want("runs")
	second := child.Start(t, "instance", file)
	second.Want("skip") // the first runs
	first.Tell("end")
	for line := first.Next(); line != "job failed"; {
		line = first.Next()
	}
	// What the second has printed may be older. A process that starts now has printed nothing.
	third := child.Start(t, "instance", file)
	third.Want("skip") // the minimum hold
	first.Stop()
	fourth := child.Start(t, "instance", file)
	fourth.Want("skip") // also now
	second.Stop()
	third.Stop()
	fourth.Stop()
}
