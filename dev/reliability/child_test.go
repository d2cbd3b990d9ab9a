//go:build linux

package reliability

import (
	"context"
	"encoding/json"
	"os"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/child"
)

// taskVariable is an environment variable with the task of a copy of the test program.
const taskVariable = "SQLLOCK_RELIABILITY_TASK"

// A task describes what a child does.
type task struct {
	Role        string
	Kind        string // of database: a cell's name
	DSN         string
	TTL         time.Duration
	Key         string
	Guarded     bool
	Transaction bool // whether it is stopped within a transaction
}

var roles = map[string]child.Role{
	"guarded writer": performs(guardedWriter),
}

// performs returns a role that reads its task.
func performs(do func(context.Context, task, <-chan string) error) child.Role {
	return func(ctx context.Context, told <-chan string) error {
		var t task
		if err := json.Unmarshal([]byte(os.Getenv(taskVariable)), &t); err != nil {
			return err
		}
		return do(ctx, t, told)
	}
}

// startChild starts a copy of the test program.
func startChild(t *testing.T, do task) *child.Process {
	t.Helper()
	text := check.Value(json.Marshal(do))(t)
	return child.Start(t, do.Role, taskVariable+"="+string(text))
}

// cellOf returns the cell of a task.
func (do task) cell() cell {
	for _, c := range servers {
		if c.name == do.Kind {
			return c
		}
	}
	panic(do.Kind)
}

// open returns a pool, and a registry on it.
func (do task) open(ctx context.Context, opts sqllock.RegistryOptions) (*sqlx.DB, *sqllock.Registry, error) {
	c := do.cell()
	db, err := sqlx.Connect(c.driver, do.DSN)
	if err != nil {
		return nil, nil, err
	}
	repository, err := sqllock.NewRepository(ctx, db.DB, c.dialect(), nil)
	if err != nil {
		return nil, nil, err
	}
	opts.TTL = do.TTL
	registry, err := sqllock.NewRegistry(repository, &opts)
	return db, registry, err
}
