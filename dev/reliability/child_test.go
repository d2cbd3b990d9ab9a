//go:build linux

package reliability

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jmoiron/sqlx"

	"github.com/sqllock/sqllock"
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
	Keys        []string // the roles of a leader
	Dir         string
	Guarded     bool
	Transaction bool // whether it is stopped within a transaction
	Competition string
	Number      int           // of the process
	Lasts       time.Duration // how long it competes
}

var roles = map[string]func(context.Context, task) error{
	"guarded writer": guardedWriter,
	"fenced holders": fencedHolders,
	"leader":         leaderOfRoles,
	"contender":      contender,
}

// beChild runs the task if this process is a child.
func beChild() bool {
	text := os.Getenv(taskVariable)
	if text == "" {
		return false
	}
	var do task
	err := json.Unmarshal([]byte(text), &do)
	if err == nil {
		err = roles[do.Role](context.Background(), do)
	}
	if err != nil {
		fmt.Println("error", strconv.Quote(err.Error()))
	}
	return true
}

// cellOf returns the cell of a task.
func (do task) cell() cell {
	for _, c := range append(servers[:len(servers):len(servers)], sqlite) {
		if c.name == do.Kind {
			return c
		}
	}
	panic(do.Kind)
}

// open returns a pool, of limited size if most is not 0, and a registry on it.
func (do task) open(ctx context.Context, most int, opts sqllock.RegistryOptions) (*sqlx.DB, *sqllock.Registry, error) {
	c := do.cell()
	db, err := sqlx.Connect(c.driver, do.DSN)
	if err != nil {
		return nil, nil, err
	}
	db.SetMaxOpenConns(most)
	db.SetMaxIdleConns(max(most, 2))
	repository, err := sqllock.NewRepository(ctx, db.DB, c.dialect(), nil)
	if err != nil {
		return nil, nil, err
	}
	opts.TTL = do.TTL
	registry, err := sqllock.NewRegistry(repository, &opts)
	return db, registry, err
}

// A child is a copy of the test program.
type child struct {
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.Writer
	lines <-chan string
	kept  []string // lines that nobody has awaited yet
	// kill kills the process. It is safe for concurrent use.
	kill func()
}

// startChild starts a copy of the test program, which is killed when this process dies.
func startChild(t *testing.T, do task) *child {
	t.Helper()
	text, err := json.Marshal(do)
	must(t, err)
	c := &child{t: t, cmd: exec.Command(os.Args[0])} //nolint:noctx // kill ends it
	c.cmd.Env = append(os.Environ(), taskVariable+"="+string(text))
	c.cmd.Stderr = os.Stderr
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	c.stdin, err = c.cmd.StdinPipe()
	must(t, err)
	out, err := c.cmd.StdoutPipe()
	must(t, err)
	c.lines = c.run(out)
	t.Cleanup(c.kill)
	return c
}

// run starts the process on a thread that lasts as long: the kernel treats the death of that
// thread as the death of the parent.
func (c *child) run(out io.Reader) <-chan string {
	lines, ended, started := make(chan string, 100), make(chan struct{}), make(chan error)
	go func() {
		defer close(ended)
		defer close(lines)
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		err := c.cmd.Start()
		started <- err
		if err != nil {
			return
		}
		for scan := bufio.NewScanner(out); scan.Scan(); {
			lines <- scan.Text()
		}
		_ = c.cmd.Wait()
	}()
	must(c.t, <-started)
	c.kill = sync.OnceFunc(func() {
		_ = c.cmd.Process.Kill()
		for range lines { // discard the remaining lines
		}
		<-ended
	})
	return lines
}

// await waits for a line that begins with word, and returns the rest of the line. Other lines are kept
// for later calls.
func (c *child) await(word string) string {
	c.t.Helper()
	_, rest := c.awaitOne(word)
	return rest
}

// awaitOne waits for a line that begins with one of some words, and returns that word, too.
func (c *child) awaitOne(words ...string) (word, rest string) {
	c.t.Helper()
	for i, line := range c.kept {
		if word, rest, found := begins(line, words); found {
			c.kept = slices.Delete(c.kept, i, i+1)
			return word, rest
		}
	}
	limit := time.NewTimer(time.Minute)
	defer limit.Stop()
	for {
		select {
		case line, ok := <-c.lines:
			if word, rest, found := begins(line, words); found {
				return word, rest
			}
			if !ok || strings.HasPrefix(line, "error ") {
				c.t.Fatalf("waiting for %q: %s", words, line)
			}
			c.kept = append(c.kept, line)
		case <-limit.C:
			c.t.Fatalf("the child has ended without printing %q", words)
		}
	}
}

func begins(line string, words []string) (word, rest string, found bool) {
	for _, word := range words {
		if rest, found := strings.CutPrefix(line, word); found {
			return word, strings.TrimSpace(rest), true
		}
	}
	return "", "", false
}

// stop stops the process with SIGSTOP and waits until it has stopped. It is false if the process has
// ended before.
func (c *child) stop() bool {
	c.t.Helper()
	if err := c.cmd.Process.Signal(syscall.SIGSTOP); errors.Is(err, os.ErrProcessDone) {
		return false
	} else if err != nil {
		c.t.Fatal(err)
	}
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for limit := time.Now().Add(promptly); ; <-look.C {
		switch state := c.state(); {
		case state == "T":
			return true
		case state == "" || state == "Z":
			return false
		case time.Now().After(limit):
			c.t.Fatalf("the child does not stop: %q", state)
		}
	}
}

// state returns the kernel's letter for the state of the process, or nothing if there is no such process.
func (c *child) state() string {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", c.cmd.Process.Pid))
	if err != nil {
		return ""
	}
	fields := strings.Fields(string(stat[strings.LastIndexByte(string(stat), ')')+1:]))
	return fields[0]
}

func (c *child) goOn() {
	c.t.Helper()
	must(c.t, c.cmd.Process.Signal(syscall.SIGCONT))
}

func (c *child) tell(line string) {
	c.t.Helper()
	_, err := fmt.Fprintln(c.stdin, line)
	must(c.t, err)
}
