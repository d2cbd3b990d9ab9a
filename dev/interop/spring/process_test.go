//go:build interop

package spring_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// taskVariable is the environment variable with the [task] of a Go client, a copy of the test
// program.
const taskVariable = "SQLLOCK_INTEROP_TASK"

// A task describes what a Go client does.
type task struct {
	Driver, DSN string
	TTL         time.Duration
	Goal        int // of the counter
	Callers     int // goroutines
}

// roles are what Go clients do.
var roles = map[string]child.Role{"count": performs(count), "hold": performs(hold)}

// performs returns a role that connects to the database, and prints its result.
func performs(do func(context.Context, task, *sqlx.DB, *sqllock.Registry) (any, error)) child.Role {
	return func(ctx context.Context, _ <-chan string) error {
		var t task
		if err := json.Unmarshal([]byte(os.Getenv(taskVariable)), &t); err != nil {
			return err
		}
		db, err := sqlx.ConnectContext(ctx, t.Driver, t.DSN)
		if err != nil {
			return err
		}
		d := map[string]dialect.Dialect{"postgres": dialect.Postgres(), "mysql": dialect.MySQL()}[t.Driver]
		repository, err := sqllock.NewRepository(dbtest.Unhurried(ctx), db.DB, d, &sqllock.RepositoryOptions{TTL: t.TTL})
		if err != nil {
			return err
		}
		registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: t.TTL, NoRenew: true})
		if err != nil {
			return err
		}
		result, err := do(ctx, t, db, registry)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(result)
	}
}

// hold acquires the lock, prints a line, and keeps the lock until the process is killed.
func hold(ctx context.Context, _ task, _ *sqlx.DB, registry *sqllock.Registry) (any, error) {
	lease, err := registry.Lock(ctx, key)
	if err != nil {
		return nil, err
	}
	fmt.Println(lease.Holder())
	select {}
}

// process starts a Go client on the cell's database.
func (c *cell) process(t *testing.T, role string, todo task) *child.Process {
	t.Helper()
	todo.Driver, todo.DSN = c.db.Driver, c.db.DSN
	text := check.Value(json.Marshal(todo))(t)
	return child.Start(t, role, taskVariable+"="+string(text))
}

func TestMain(m *testing.M) {
	child.Be(roles)
	// Killed clients and ended tests leave broken connections, which the driver would log.
	_ = mysql.SetLogger(&mysql.NopLogger{}) // it fails only for nil
	code := m.Run()
	sayMissing()
	if err := errors.Join(stopJVMs()...); err != nil {
		fmt.Fprintln(os.Stderr, "stop Java:", err)
		code = max(code, 1)
	}
	os.Exit(code)
}
