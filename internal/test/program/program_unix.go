//go:build unix

package program

import (
	"bufio"
	"errors"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/sqllock/sqllock/internal/test/check"
)

// A Program is a sqllock that runs in a process of its own, without a terminal.
type Program struct {
	Cmd            *exec.Cmd
	Stdin          io.WriteCloser
	Stdout, Stderr *Stream

	t *testing.T
}

// Limit is the time limit for whatever a test waits for. It only ends tests that would never end, so it is long
// enough for the slowest machine.
const Limit = 4 * time.Minute

// Slow skips a test with -short. It starts many processes, or waits for leases to end.
func Slow(t *testing.T) {
	t.Helper()
	if testing.Short() {
		t.Skip("SKIPPED with -short: starts many processes, or waits for leases to end")
	}
}

// Start starts sqllock. A read from its output that takes longer than Limit fails the test.
func Start(t *testing.T, dsn string, args ...string) *Program {
	t.Helper()
	return StartAs(t, dsn, "sqllock", args...)
}

// StartAs is Start for another program, which runs sqllock.
func StartAs(t *testing.T, dsn, name string, args ...string) *Program {
	t.Helper()
	//nolint:noctx // a test's context ends before its cleanups, which need the process
	p := &Program{t: t, Cmd: exec.Command(name, args...)}
	p.Cmd.Env = append(os.Environ(), "XDG_STATE_HOME="+t.TempDir(), "TMPDIR="+t.TempDir())
	if dsn != "" {
		p.Cmd.Env = append(p.Cmd.Env, "SQLLOCK_DSN="+dsn)
	}
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var toClose [2]*os.File
	p.Stdout, toClose[0] = NewStream(t)
	p.Stderr, toClose[1] = NewStream(t)
	p.Cmd.Stdout, p.Cmd.Stderr = toClose[0], toClose[1]
	stdin := check.Value(p.Cmd.StdinPipe())(t)
	p.Stdin = stdin
	check.Must(t, p.Cmd.Start())
	for _, f := range toClose {
		_ = f.Close() // the child has it
	}
	t.Cleanup(func() {
		_ = p.Cmd.Process.Kill() // usually it has ended
		_ = p.Cmd.Wait()
	})
	return p
}

// Signal sends a signal to the process.
func (p *Program) Signal(s os.Signal) {
	p.t.Helper()
	check.Must(p.t, p.Cmd.Process.Signal(s))
}

// WantCode waits for the end of the process, and checks its exit code: -1 after a signal.
func (p *Program) WantCode(code int) {
	p.t.Helper()
	if got := p.Code(); got != code {
		p.t.Fatalf("exit code %d, want %d; stderr: %s", got, code, p.Stderr.Rest())
	}
}

// Code waits for the end of the process, and returns its exit code: -1 after a signal.
func (p *Program) Code() int {
	p.t.Helper()
	err := p.Cmd.Wait()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		p.t.Fatal(err)
	}
	return p.Cmd.ProcessState.ExitCode()
}

// A Stream is the output of a process, and of its children.
type Stream struct {
	File  *os.File
	Lines *bufio.Scanner

	t *testing.T
}

// NewStream returns a stream, and the file to write to.
func NewStream(t *testing.T) (s *Stream, write *os.File) {
	t.Helper()
	read, write, err := os.Pipe()
	check.Must(t, err)
	t.Cleanup(func() { _ = read.Close() }) // all was read
	check.Must(t, read.SetReadDeadline(time.Now().Add(Limit)))
	return &Stream{File: read, Lines: bufio.NewScanner(read), t: t}, write
}

// Await reads until a line contains text.
func (s *Stream) Await(text string) {
	s.t.Helper()
	if !s.Find(text) {
		s.t.Fatalf("the output has ended without a line with %q", text)
	}
}

// Find is Await that returns false if the output ends before.
func (s *Stream) Find(text string) bool {
	s.t.Helper()
	for s.Lines.Scan() {
		if strings.Contains(s.Lines.Text(), text) {
			return true
		}
	}
	if err := s.Lines.Err(); err != nil {
		s.t.Fatalf("no line with %q: %v", text, err)
	}
	return false
}

// Number reads a line that is a number.
func (s *Stream) Number() int {
	s.t.Helper()
	s.Lines.Scan()
	n, err := strconv.Atoi(strings.TrimSpace(s.Lines.Text()))
	if err != nil {
		s.t.Fatal(err, s.Lines.Err())
	}
	return n
}

// Rest returns the remaining lines. It waits until all processes that can write have ended.
func (s *Stream) Rest() string {
	s.t.Helper()
	var lines []string
	for s.Lines.Scan() {
		lines = append(lines, s.Lines.Text())
	}
	if err := s.Lines.Err(); err != nil {
		s.t.Fatalf("a process still has the pipe open: %v", err)
	}
	return strings.Join(lines, "\n")
}
