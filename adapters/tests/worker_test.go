package tests_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// The variables of a process: the database and the directory that it shares with others.
const (
	databaseVariable  = "SQLLOCK_ADAPTERS_DATABASE"
	driverVariable    = "SQLLOCK_ADAPTERS_DRIVER"
	dsnVariable       = "SQLLOCK_ADAPTERS_DSN"
	directoryVariable = "SQLLOCK_ADAPTERS_DIRECTORY"
)

func start(t *testing.T, library, dir string, db *dbtest.DB) *child.Process {
	t.Helper()
	return child.Start(t, library,
		databaseVariable+"="+db.Name, driverVariable+"="+db.Driver, dsnVariable+"="+db.DSN, directoryVariable+"="+dir)
}

// A worker is what a process works with.
type worker struct {
	registry *sqllock.Registry
	db       *sql.DB
	database string // sqlite, postgres or mysql
	dir      string
	finish   chan struct{}
}

func newWorker(ctx context.Context) (*worker, error) {
	database := os.Getenv(databaseVariable)
	db, err := sql.Open(os.Getenv(driverVariable), os.Getenv(dsnVariable))
	if err != nil {
		return nil, err
	}
	dialects := map[string]dialect.Dialect{"sqlite": dialect.SQLite(), "postgres": dialect.Postgres(), "mysql": dialect.MySQL()}
	repository, err := sqllock.NewRepository(ctx, db, dialects[database], nil)
	if err != nil {
		return nil, err
	}
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: ttl})
	return &worker{registry, db, database, os.Getenv(directoryVariable), make(chan struct{})}, err
}

// role returns a process that uses a library. It is told to "run" under the lock, to "try", which
// does not wait, and to "finish" its work.
func (l library) role() child.Role {
	return func(ctx context.Context, told <-chan string) error {
		w, err := newWorker(ctx)
		if err != nil {
			return err
		}
		run, err := l.start(ctx, w)
		if err != nil {
			return err
		}
		for {
			select {
			case command := <-told:
				w.do(ctx, command, run)
			case <-ctx.Done():
				return nil // what it holds stays, as after a crash
			}
		}
	}
}

func (w *worker) do(ctx context.Context, command string, run func(context.Context) error) {
	switch command {
	case "run":
		go say(ctx, run)
	case "try":
		go func() {
			ctx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			defer cancel()
			say(ctx, run)
		}()
	case "finish":
		w.finish <- struct{}{}
	}
}

// say runs, and says what came of it.
func say(ctx context.Context, run func(context.Context) error) {
	switch err := run(ctx); {
	case err == nil:
		fmt.Println("done")
	case errors.Is(err, sqllock.ErrNotAcquired), ctx.Err() != nil:
		fmt.Println("refused")
	default:
		fmt.Println("failed:", err)
	}
}

// work is what the library runs under the lock: it lasts until the test says so.
func (w *worker) work(ctx context.Context) error {
	fmt.Println("working")
	select {
	case <-w.finish:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
