//go:build interop

package spring_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
	"github.com/sqllock/sqllock/dialect"
)

// taskVariable is the environment variable with the [task] of a Go client, a copy of the test
// program.
const taskVariable = "SQLLOCK_INTEROP_TASK"

// A task describes what a Go client does.
type task struct {
	Do          string // one of tasks
	Driver, DSN string
	TTL         time.Duration
	Goal        int // of the counter
	Callers     int // goroutines
}

var tasks = map[string]func(context.Context, task, *sqlx.DB, *sqllock.Registry) (any, error){
	"count": count,
	"hold":  hold,
}

// beProcess runs the task and ends the process.
func beProcess(text string) {
	if err := perform(text); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

func perform(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	ctx := context.Background()
	db, err := sqlx.ConnectContext(ctx, t.Driver, t.DSN)
	if err != nil {
		return err
	}
	d := map[string]dialect.Dialect{"postgres": dialect.Postgres(), "mysql": dialect.MySQL()}[t.Driver]
	repository, err := sqllock.NewRepository(ctx, db.DB, d, &sqllock.RepositoryOptions{TTL: t.TTL})
	if err != nil {
		return err
	}
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: t.TTL})
	if err != nil {
		return err
	}
	result, err := tasks[t.Do](ctx, t, db, registry)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(result)
}

// hold acquires the lock, prints a line, and keeps the lock until the process is killed.
func hold(ctx context.Context, _ task, _ *sqlx.DB, registry *sqllock.Registry) (any, error) {
	lock, err := registry.Obtain(key)
	if err != nil {
		return nil, err
	}
	lease, err := lock.Lock(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Println(lease.Holder())
	select {}
}

// A process is a Go client in a process of its own.
type process struct {
	cmd   *exec.Cmd
	lines *bufio.Scanner
}

// process starts a Go client on the cell's database.
func (c *cell) process(t *testing.T, todo task) *process {
	t.Helper()
	todo.Driver, todo.DSN = c.db.Driver, c.db.DSN
	text, err := json.Marshal(todo)
	must(t, err)
	p := &process{cmd: exec.CommandContext(t.Context(), os.Args[0])} //nolint:gosec // this program
	p.cmd.Env = append(os.Environ(), taskVariable+"="+string(text))
	p.cmd.Stderr = os.Stderr
	stdout, err := p.cmd.StdoutPipe()
	must(t, err)
	p.lines = bufio.NewScanner(stdout)
	must(t, p.cmd.Start())
	t.Cleanup(p.kill)
	return p
}

var errEnded = errors.New("a Go process has ended")

// line returns the next line of its output.
func (p *process) line() (string, error) {
	if !p.lines.Scan() {
		return "", errors.Join(errEnded, p.lines.Err())
	}
	return p.lines.Text(), nil
}

// kill kills the process with SIGKILL and waits until it has ended.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait() // it was killed
}
