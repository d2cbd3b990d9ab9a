package tests_test

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
	"github.com/sqllock/sqllock/internal/test/dbtest"
)

// taskVariable has the [task] of a process. The test program does it instead of running tests.
const taskVariable = "SQLLOCK_ADAPTERS_TASK"

// A task is what a process does: it uses a library, over a database that it shares with others.
type task struct{ Library, Database, Driver, DSN, Dir string }

// A process is another process, which a test commands line by line. It ends with this one, or with
// the test.
type process struct {
	*testing.T

	kill func()
	in   *os.File
	says <-chan string
}

func start(t *testing.T, library, dir string, db *dbtest.DB) *process {
	t.Helper()
	text, err := json.Marshal(task{library, db.Name, db.Driver, db.DSN, dir})
	must(t, err)
	stdin, in, err := os.Pipe()
	must(t, err)
	cmd := exec.CommandContext(t.Context(), os.Args[0]) //nolint:gosec // this program
	cmd.Env = append(os.Environ(), taskVariable+"="+string(text))
	cmd.Stdin, cmd.Stderr = stdin, os.Stderr
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	must(t, stdin.Close())
	says := make(chan string, 100)
	go func() {
		defer close(says)
		for scan := bufio.NewScanner(out); scan.Scan(); {
			says <- scan.Text()
		}
		_ = cmd.Wait()
	}()
	p := &process{T: t, in: in, says: says, kill: func() {
		_ = cmd.Process.Kill()
		for range says { // until it has ended
		}
	}}
	t.Cleanup(func() {
		p.kill()
		must(t, in.Close())
	})
	return p
}

// does sends a command, and waits for what the process says then.
func (p *process) does(command, want string) {
	p.Helper()
	p.send(command)
	p.expect(want)
}

func (p *process) send(command string) {
	p.Helper()
	_, err := fmt.Fprintln(p.in, command)
	must(p.T, err)
}

func (p *process) expect(want string) {
	p.Helper()
	select {
	case said, ok := <-p.says:
		if !ok || said != want {
			p.Fatalf("the process says %q, want %q", said, want)
		}
	case <-time.After(time.Minute): // no machine is that slow
		p.Fatalf("the process does not say %q", want)
	}
}

// A worker is what a process works with.
type worker struct {
	registry *sqllock.Registry
	db       *sqlx.DB
	dir      string // the processes share it
	finish   chan struct{}
}

// do does a task, in a process of its own, until its input ends.
func do(text string) error {
	var t task
	if err := json.Unmarshal([]byte(text), &t); err != nil {
		return err
	}
	ctx := context.Background()
	dialects := map[string]dialect.Dialect{"sqlite": dialect.SQLite(), "postgres": dialect.Postgres(), "mysql": dialect.MySQL()}
	db, err := sqlx.Open(t.Driver, t.DSN)
	if err != nil {
		return err
	}
	repository, err := sqllock.NewRepository(ctx, db, dialects[t.Database], nil)
	if err != nil {
		return err
	}
	registry, err := sqllock.NewRegistry(repository, &sqllock.RegistryOptions{TTL: ttl})
	if err != nil {
		return err
	}
	w := &worker{registry, db, t.Dir, make(chan struct{})}
	run, err := libraries[t.Library].start(ctx, w)
	if err != nil {
		return err
	}
	for scan := bufio.NewScanner(os.Stdin); scan.Scan(); {
		switch scan.Text() {
		case "run":
			go say(ctx, run)
		case "try":
			bounded, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
			go func() {
				defer cancel()
				say(bounded, run)
			}()
		case "finish":
			w.finish <- struct{}{}
		}
	}
	return nil
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
