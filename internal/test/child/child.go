// Package child runs a test in several processes of the operating system: the test binary starts
// itself again, and acts in another role.
package child

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
	"github.com/sqllock/sqllock/internal/test/proc"
	"github.com/sqllock/sqllock/internal/test/testmain"
)

// limit only ends tests that would never end, so it is long enough for the slowest machine.
const limit = 4 * time.Minute

// variable has the role of a child. Its arguments are the other variables that it was given.
const variable = "SQLLOCK_TEST_CHILD"

// A Role is what a child does. ctx ends when the parent has ended. told receives the lines of
// [Process.Tell].
type Role func(ctx context.Context, told <-chan string) error

// Main is for TestMain: it runs the tests, or the role of a child.
func Main(m *testing.M, roles map[string]Role) {
	Be(roles)
	testmain.Run(m)
}

// Be is for a TestMain that does more than Main: it runs the role of a child, and exits. It returns if this process
// is not a child.
func Be(roles map[string]Role) {
	name, isChild := os.LookupEnv(variable)
	if !isChild {
		return
	}
	ctx, cancel := context.WithCancel(context.Background())
	told := make(chan string, 16)
	go func() {
		defer cancel()
		for lines := bufio.NewScanner(os.Stdin); lines.Scan(); {
			told <- lines.Text()
		}
	}()
	if err := roles[name](ctx, told); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// A Process is a child, as its parent sees it.
type Process struct {
	*proc.Process

	t     *testing.T
	stdin io.WriteCloser
	lines chan string
}

// Start starts a child with additional environment variables, NAME=value. The test kills it when
// it ends.
func Start(t *testing.T, role string, env ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	check.Must(t, err)
	cmd := exec.Command(self) //nolint:gosec,noctx // this program; the cleanup kills it
	cmd.Env = append(append(os.Environ(), variable+"="+role), env...)
	proc.OwnGroup(cmd)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	p := &Process{t: t, lines: make(chan string, 1024)}
	p.stdin, err = cmd.StdinPipe()
	check.Must(t, err)
	stdout, err := cmd.StdoutPipe()
	check.Must(t, err)
	p.Process, err = proc.Start(cmd, syscall.SIGKILL, func() {
		defer close(p.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.lines <- lines.Text()
		}
	})
	check.Must(t, err)
	t.Cleanup(func() {
		p.Kill()
		if t.Failed() {
			t.Logf("%s, process %d, wrote: %s", role, p.Cmd.Process.Pid, &stderr)
		}
	})
	return p
}

// Next waits for the next line that the child prints. It fails the test if the child ends.
func (p *Process) Next() string {
	p.t.Helper()
	select {
	case line, ok := <-p.lines:
		if !ok {
			p.t.Fatal("the child has ended")
		}
		return line
	case <-time.After(limit):
		p.t.Fatalf("the child has printed nothing for %v", limit)
	}
	return ""
}

// Want waits for the next line, and fails the test if it is another one.
func (p *Process) Want(line string) {
	p.t.Helper()
	if next := p.Next(); next != line {
		p.t.Fatalf("the child printed %q, want %q", next, line)
	}
}

// Tell sends a line to the child.
func (p *Process) Tell(line string) {
	p.t.Helper()
	if _, err := io.WriteString(p.stdin, line+"\n"); err != nil {
		p.t.Fatal(err)
	}
}

// Kill kills the child, as a crash does, if it has not ended, and waits for its end. It is safe for concurrent use.
func (p *Process) Kill() {
	_ = p.Cmd.Process.Kill()
	for range p.lines { // so that it can print the others
	}
	<-p.Ended
}
