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
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/testmain"
)

// limit only ends tests that would never end, so it is long enough for the slowest machine.
const limit = 4 * time.Minute

// variable has the role of a child. Its arguments are the other variables that it was given.
const variable = "SQLLOCK_TEST_CHILD"

// A Role is what a child does. ctx ends when the parent has ended, or calls [Process.Stop]. told
// receives the lines of [Process.Tell].
type Role func(ctx context.Context, told <-chan string) error

// Main is for TestMain: it runs the tests, or the role of a child.
func Main(m *testing.M, roles map[string]Role) {
	name, isChild := os.LookupEnv(variable)
	if !isChild {
		testmain.Run(m)
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
	t     *testing.T
	cmd   *exec.Cmd
	stdin io.WriteCloser
	lines chan string
}

// Start starts a child with additional environment variables, NAME=value. The test kills it when
// it ends.
func Start(t *testing.T, role string, env ...string) *Process {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self) //nolint:gosec,noctx // this program; the cleanup kills it
	cmd.Env = append(append(os.Environ(), variable+"="+role), env...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	p := &Process{t: t, cmd: cmd, lines: make(chan string, 1024)}
	if p.stdin, err = cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	read := make(chan struct{})
	go func() {
		defer close(read)
		defer close(p.lines)
		for lines := bufio.NewScanner(stdout); lines.Scan(); {
			p.lines <- lines.Text()
		}
	}()
	t.Cleanup(func() {
		_ = p.cmd.Process.Kill() // usually it has ended
		for range p.lines {      // so that the reader ends
		}
		<-read
		_ = p.cmd.Wait()
		if t.Failed() {
			t.Logf("%s, process %d, wrote: %s", role, p.cmd.Process.Pid, &stderr)
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

// Stop ends the context of the child, and waits until it has ended without an error. Lines that it
// prints until then are dropped.
func (p *Process) Stop() {
	p.t.Helper()
	_ = p.stdin.Close() // it may have ended
	for range p.lines {
	}
	if err := p.cmd.Wait(); err != nil {
		p.t.Errorf("the child has failed: %v", err)
	}
}

// Kill kills the child, as a crash does.
func (p *Process) Kill() {
	p.t.Helper()
	if err := p.cmd.Process.Kill(); err != nil {
		p.t.Fatal(err)
	}
	for range p.lines {
	}
	_ = p.cmd.Wait() // it was killed
}
