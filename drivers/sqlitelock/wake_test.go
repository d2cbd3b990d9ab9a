package sqlitelock_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/drivers/sqlitelock"
	"github.com/sqllock/sqllock/internal/session/sqlitedriver"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
)

const childDSN = "SQLLOCK_TEST_DSN"

// hold is the role of a process that locks and unlocks as it is told.
func hold(ctx context.Context, told <-chan string) error {
	registry, err := sqlitelock.Open(ctx, os.Getenv(childDSN), &sqlitelock.Options{Registry: sqllock.RegistryOptions{TTL: time.Hour}})
	if err != nil {
		return err
	}
	for {
		select {
		case <-ctx.Done():
			return registry.Close(context.WithoutCancel(ctx))
		case <-told:
		}
		lease, err := registry.Lock(ctx, "k")
		if err != nil {
			return err
		}
		fmt.Println("held")
		select {
		case <-ctx.Done():
			return registry.Close(context.WithoutCancel(ctx))
		case <-told:
		}
		if err := lease.Unlock(ctx); err != nil {
			return err
		}
		fmt.Println("released")
	}
}

// A release in another process ends a wait that no poll ends: the next one comes after a quarter of an hour.
func TestOpen_AReleaseWakes(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux reports the writes of others")
	}
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	dsn := sqlitedriver.DSN(filepath.Join(t.TempDir(), "l.db"))
	registry := check.Value(sqlitelock.Open(ctx, dsn, &sqlitelock.Options{
		Registry: sqllock.RegistryOptions{IdleBetweenTries: time.Hour, TTL: time.Hour}, // a waiter reads the row when it expires
	}))(t)
	holder := child.Start(t, "hold", childDSN+"="+dsn)
	for range 3 {
		holder.Tell("lock")
		holder.Want("held")
		acquired := make(chan error, 1)
		go func() {
			lease, err := registry.Lock(ctx, "k")
			if err == nil {
				err = lease.Unlock(ctx)
			}
			acquired <- err
		}()
		time.Sleep(700 * time.Millisecond)
		holder.Tell("unlock")
		holder.Want("released")
		check.Must(t, <-acquired)
	}
	check.Must(t, registry.Close(ctx))
}
